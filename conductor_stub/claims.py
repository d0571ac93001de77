"""Claims of alternates before a rescheduled build goes to one.

Reference page conductor, sections 5 (step 6.2) and 7.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from conductor_stub.records import Candidate
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

Release = Callable[[RequestContext, str], None]
"""``release(context, instance_uuid)``: give back whatever is booked for the instance."""
Claim = Callable[[RequestContext, objects.RequestSpec, str, objects.Selection], bool]
"""``claim(context, spec, instance_uuid, selection)``: whether the host is booked, if it need be."""


def without_placement(
    context: RequestContext,  # noqa: ARG001
    spec: objects.RequestSpec,  # noqa: ARG001
    instance_uuid: str,
    selection: objects.Selection,
) -> bool:
    """Take hosts that need no allocation; without Placement no other can be claimed."""
    if allocation_request(selection) is None:
        return True
    LOG.warning(
        "An alternate host of instance %s needs an allocation in Placement, but this conductor "
        "has no Placement client; the host is passed over",
        instance_uuid,
    )
    return False


def nothing_to_release(_context: RequestContext, _instance_uuid: str) -> None:
    """Release nothing, as nothing is claimed."""


@dataclass(frozen=True)
class Claims:
    """Functions that claim hosts for instances, and release them."""

    claim: Claim = without_placement
    release: Release = nothing_to_release


def allocation_request(selection: objects.Selection) -> dict[str, Any] | None:
    """The allocation to claim; None where the scheduler works without Placement."""
    text = selection.allocation_request
    return json.loads(text) if text else None


def book_first(
    claim: Claim,
    context: RequestContext,
    spec: objects.RequestSpec,
    instance_uuid: str,
    candidates: list[Candidate],
) -> int:
    """The position of the first candidate claimed; MaxRetriesExceeded when there is none."""
    for position, candidate in enumerate(candidates):
        selection = candidate.selection
        # Without one it is from an older scheduler, whose hosts want no booking.
        if selection is None or claim(context, spec, instance_uuid, selection):
            return position
    raise errors.MaxRetriesExceeded(
        reason="Exhausted all hosts available for retrying build failures for instance "
        f"{instance_uuid}."
    )


def booked_providers(spec: objects.RequestSpec | None, chosen: Candidate) -> None:
    """Note in the resource groups of *spec* the providers of the booking of *chosen*."""
    if spec is None or chosen.selection is None:
        return
    mappings = (allocation_request(chosen.selection) or {}).get("mappings") or {}
    for group in spec.requested_resources or ():
        if group.requester_id in mappings:
            group.provider_uuids = mappings[group.requester_id]
