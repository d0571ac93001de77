"""The first half of a build: count the attempt, make the request, find hosts.

Reference page conductor, sections 3.4 and 3.5, section 5 (steps 2 to 4) and section 11.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub import request_dicts
from conductor_stub.records import Candidate, HostLists, Order, Plan
from conductor_stub.request_dicts import legacy_spec_of
from conductor_stub.scheduler_rpcapi import SchedulerAPI
from conductor_stub.stores import Stores
from scheduler import errors, objects
from scheduler.db import groups as group_rows
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


_ALL_WEIGHERS = frozenset(("nova.scheduler.weights.all_weighers", "scheduler.weights.all_weighers"))
_AFFINITY_MODULES = ("nova.scheduler.weights.affinity", "scheduler.weights.affinity")

FILTER_OF_POLICY = {
    "affinity": "ServerGroupAffinityFilter",
    "anti-affinity": "ServerGroupAntiAffinityFilter",
}
WEIGHER_OF_POLICY = {
    "soft-affinity": "ServerGroupSoftAffinityWeigher",
    "soft-anti-affinity": "ServerGroupSoftAntiAffinityWeigher",
}


class PolicySupport:
    """The group policies that this configuration can enforce."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._missing = {
            policy: needed
            for policy, needed in (FILTER_OF_POLICY | WEIGHER_OF_POLICY).items()
            if not _is_enabled(conf, needed)
        }

    def check(self, policies: list[str]) -> bool:
        """True if any policy concerns the scheduler; raises UnsupportedPolicyException."""
        concerned = [
            policy for policy in FILTER_OF_POLICY | WEIGHER_OF_POLICY if policy in policies
        ]
        for policy in concerned:
            if policy in self._missing:
                reason = f"{self._missing[policy]} not configured"
                LOG.error("ServerGroup policy is not supported: %s", reason)
                raise errors.UnsupportedPolicyException(reason=reason)
        return bool(concerned)


def _is_enabled(conf: cfg.ConfigOpts, needed: str) -> bool:
    if needed in FILTER_OF_POLICY.values():
        return needed in conf.filter_scheduler.enabled_filters
    paths = {f"{module}.{needed}" for module in _AFFINITY_MODULES}
    return bool((paths | _ALL_WEIGHERS) & set(conf.filter_scheduler.weight_classes))


def policies_of(group: objects.InstanceGroup) -> list[str]:
    """The policies of *group*: today's single one, or the list of older releases."""
    return [group.policy] if group.policy else list(group.policies or [])


def setup_instance_group(
    properties: Mapping[str, Any],
    group: objects.InstanceGroup,
    member_hosts: list[str],
    support: PolicySupport,
) -> dict[str, Any]:
    """The filter properties with *group* in them, whose members run on *member_hosts*.

    Hosts that the properties name already are kept.  A policy other than the four adds nothing.
    Raises UnsupportedPolicyException.
    """
    updated = copy.deepcopy(dict(properties))
    if not support.check(policies_of(group)):
        return updated
    updated["group_updated"] = True
    updated["group_hosts"] = sorted({*(updated.get("group_hosts") or ()), *member_hosts})
    updated["group_policies"] = policies_of(group)
    updated["group_members"] = list(group.members or [])
    updated["group_uuid"] = group.uuid
    return updated


def fill_in_group(
    specs: Iterable[objects.RequestSpec],
    group: objects.InstanceGroup,
    member_hosts: list[str],
    support: PolicySupport,
) -> None:
    """Put *group* into *specs*, whose members run on *member_hosts*: the form of today.

    Hosts that a request names already are kept, as is a group whose policy is not one of the
    four.  Raises UnsupportedPolicyException.
    """
    if not support.check(policies_of(group)):
        return
    for spec in specs:
        known = (spec.instance_group.hosts if spec.instance_group else None) or []
        spec.instance_group = group.copy()
        spec.instance_group.hosts = sorted({*known, *member_hosts})


def find_hosts(
    scheduler: SchedulerAPI,
    context: RequestContext,
    spec: objects.RequestSpec,
    instance_uuids: Sequence[str],
    max_attempts: int,
) -> HostLists:
    """Per instance the chosen host and its alternates; raises NoValidHost and other answers."""
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


GivenHostLists = Sequence[list[objects.Selection] | None]


@dataclass(frozen=True)
class Planner:
    """Makes the plan of one batch; *max_attempts* is ``[scheduler] max_attempts``."""

    stores: Stores
    scheduler: SchedulerAPI
    policies: PolicySupport
    max_attempts: int

    def plan(
        self,
        order: Order,
        instances: Sequence[objects.Instance],
        properties: Mapping[str, Any],
        legacy_spec: dict[str, Any],
        request_spec: objects.RequestSpec | None,
        given: GivenHostLists | None,
    ) -> Plan:
        """The plan of a batch, by the scheduler or the alternates *given*; raises its errors."""
        first, uuids = instances[0].uuid, [instance.uuid for instance in instances]
        properties = request_dicts.populate_retry(properties, first, self.max_attempts)
        LOG.debug("Rescheduling: %s", given is not None)
        if given is None:
            properties = self._with_group(properties, first)
        spec = objects.RequestSpec.from_primitives(legacy_spec, properties)
        if given is None:
            host_lists = find_hosts(self.scheduler, order.context, spec, uuids, self.max_attempts)
        else:
            host_lists = [
                [candidate_of_selection(each) for each in alternates or ()] for alternates in given
            ]
        return Plan(
            order=order,
            spec=spec,
            legacy_spec=legacy_spec,
            filter_properties=properties,
            request_spec=request_spec,
            host_lists=_one_each(host_lists, len(uuids)),
            needs_claim=given is not None,
        )

    def hosts_for(self, context: RequestContext, specs: Sequence[objects.RequestSpec]) -> HostLists:
        """The candidates for each of *specs*, alike but for their instances; see :meth:`plan`.

        The first speaks for all when the scheduler is asked.
        """
        found = group_of(self.stores, specs[0].instance_uuid)
        if found is not None:
            fill_in_group(specs, *found, self.policies)
        uuids = [spec.instance_uuid for spec in specs]
        host_lists = find_hosts(self.scheduler, context, specs[0], uuids, self.max_attempts)
        return _one_each(host_lists, len(specs))

    def of_new(self, order: Order, spec: objects.RequestSpec, candidates: list[Candidate]) -> Plan:
        """The plan of one server that has no attempt behind it."""
        properties = request_dicts.populate_retry(
            spec.to_legacy_filter_properties_dict(), spec.instance_uuid, self.max_attempts
        )
        return Plan(
            order=order,
            spec=spec,
            legacy_spec=legacy_spec_of(spec),
            filter_properties=properties,
            request_spec=spec,
            host_lists=[candidates],
            needs_claim=False,
            is_new=True,
        )

    def _with_group(self, properties: Mapping[str, Any], uuid: str) -> dict[str, Any]:
        found = group_of(self.stores, uuid)
        if found is None:
            return dict(properties)
        return setup_instance_group(properties, *found, self.policies)


def group_of(stores: Stores, instance_uuid: str) -> tuple[objects.InstanceGroup, list[str]] | None:
    """The group that the instance is a member of, if any, and where its members run."""
    try:
        with stores.api.read() as conn:
            group = group_rows.by_instance(conn, instance_uuid)
    except errors.InstanceGroupNotFound:
        return None
    hosts: set[str] = set()
    for database in stores.of_cells():
        with database.read() as conn:
            hosts.update(group_rows.member_hosts(conn, group))
    return group, sorted(hosts)


def _one_each(host_lists: HostLists, count: int) -> HostLists:
    """A list for every one of *count* instances; where none was given, an empty one."""
    return host_lists[:count] + [[] for _ in range(count - len(host_lists))]
