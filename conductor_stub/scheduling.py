"""Asking the scheduler for hosts (reference page conductor, section 3.5).

The newest scheduler interface gives Selections with alternates.  When ``[upgrade_levels]
scheduler`` keeps to an older one, the reply is one dict per instance without alternates, and a
timed-out call is repeated as the conductors of that time did.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.records import Candidate, HostLists
from scheduler import errors, objects
from scheduler.rpc.client import SchedulerAPI
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


def find_hosts(
    scheduler: SchedulerAPI,
    context: RequestContext,
    spec: objects.RequestSpec,
    instance_uuids: Sequence[str],
    max_attempts: int,
) -> HostLists:
    """One list per instance: the chosen host first, then its alternates.

    Raises whatever the scheduler answers, NoValidHost above all.
    """
    begun = time.monotonic()
    uuids = list(instance_uuids)
    try:
        selections = scheduler.select_destinations(
            context, spec, uuids, return_objects=True, return_alternates=True
        )
    except errors.SelectionObjectsWithOldRPCVersionNotSupported:
        replies = _repeated_on_timeout(scheduler, context, spec, uuids, max_attempts)
        host_lists = [[candidate_of_reply(reply)] for reply in replies]
    else:
        host_lists = [[candidate_of_selection(each) for each in chosen] for chosen in selections]
    LOG.debug(
        "Took %.2f seconds to select destinations for %d instance(s).",
        time.monotonic() - begun,
        len(uuids),
    )
    return host_lists


def _repeated_on_timeout(
    scheduler: SchedulerAPI,
    context: RequestContext,
    spec: objects.RequestSpec,
    uuids: list[str],
    max_attempts: int,
) -> list[dict[str, Any]]:
    for attempt in range(1, max_attempts):
        try:
            return scheduler.select_destinations(context, spec, uuids)
        except messaging.MessagingTimeout:
            LOG.warning(
                "Retrying select_destinations after a MessagingTimeout, attempt %s of %s.",
                attempt,
                max_attempts - 1,
            )
    return scheduler.select_destinations(context, spec, uuids)


def candidate_of_selection(selection: objects.Selection) -> Candidate:
    """One host of today's reply."""
    limits = selection.limits.to_dict() if selection.limits is not None else {}
    return Candidate(selection.service_host, selection.nodename, limits, selection)


def candidate_of_reply(reply: dict[str, Any]) -> Candidate:
    """One host of the older reply, whose limits are null when the chance driver chose it."""
    return Candidate(reply["host"], reply["nodename"], reply["limits"] or {}, None)
