"""Booking an alternate host before a rescheduled build goes there.

Reference page conductor, sections 5 (step 6.2) and 7.  What books is a callable given to the
conductor; without one only hosts that need no booking are taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

from conductor_stub.records import Candidate, Plan
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

Claim = Callable[[RequestContext, objects.RequestSpec, str, dict[str, Any], str | None], bool]
"""``claim(context, spec, instance_uuid, allocation_request, version)``: whether it was booked."""


def without_placement(
    context: RequestContext,  # noqa: ARG001
    spec: objects.RequestSpec,  # noqa: ARG001
    instance_uuid: str,
    allocation_request: dict[str, Any],  # noqa: ARG001
    version: str | None,  # noqa: ARG001
) -> bool:
    """Refuse: a host that wants an allocation cannot be booked when nothing books allocations."""
    LOG.warning(
        "An alternate host of instance %s needs an allocation in Placement, but this conductor "
        "has no Placement client; the host is passed over",
        instance_uuid,
    )
    return False


def exhausted(instance_uuid: str) -> errors.MaxRetriesExceeded:
    """The error of an instance for which no alternate is left."""
    return errors.MaxRetriesExceeded(
        reason="Exhausted all hosts available for retrying build failures for instance "
        f"{instance_uuid}."
    )


def allocation_request(selection: objects.Selection) -> dict[str, Any] | None:
    """What must be booked on the host; None where the scheduler works without Placement."""
    text = selection.allocation_request
    return json.loads(text) if text else None


def fill_provider_mapping(spec: objects.RequestSpec | None, allocation: dict[str, Any]) -> None:
    """Note for every resource group of *spec* which providers its part of the booking went to."""
    groups = (spec.requested_resources if spec is not None else None) or ()
    for group in groups:
        group.provider_uuids = allocation["mappings"][group.requester_id]


def book_first(
    claim: Claim,
    context: RequestContext,
    plan: Plan,
    instance_uuid: str,
    candidates: list[Candidate],
) -> int:
    """The position of the first of *candidates* that *claim* books for the instance.

    Raises MaxRetriesExceeded when there is none, or what *claim* raises.
    """
    for position, candidate in enumerate(candidates):
        selection = candidate.selection
        allocation = allocation_request(selection) if selection is not None else None
        if selection is None or allocation is None:
            return position  # a scheduler without Placement: assume that it fits
        version = selection.allocation_request_version
        if claim(context, plan.spec, instance_uuid, allocation, version):
            fill_provider_mapping(plan.request_spec, allocation)
            return position
    raise exhausted(instance_uuid)
