"""The first half of a build: count the attempt, make the request, find hosts.

Reference page conductor, sections 3.4 and 3.5, section 5 (steps 2 to 4) and section 11.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub.records import HostLists, Order, Plan
from conductor_stub.rpcapi import SchedulerAPI
from conductor_stub.server_rows import group_of
from scheduler import errors, objects
from scheduler.db import groups
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

ENFORCERS = {
    "affinity": "ServerGroupAffinityFilter",
    "anti-affinity": "ServerGroupAntiAffinityFilter",
    "soft-affinity": "ServerGroupSoftAffinityWeigher",
    "soft-anti-affinity": "ServerGroupSoftAntiAffinityWeigher",
}
"""The filter or weigher that each policy of a server group needs."""
WEIGHERS = ("nova.scheduler.weights", "scheduler.weights")

GivenHostLists = Sequence[list[objects.Selection] | None]


def _unenforced(conf: cfg.ConfigOpts) -> dict[str, str]:
    """The policies that this configuration cannot enforce, and what each of them lacks."""
    weighers, filters = conf.filter_scheduler.weight_classes, conf.filter_scheduler.enabled_filters
    has_all_weighers = any(f"{module}.all_weighers" in weighers for module in WEIGHERS)
    enabled = {*filters}
    for name in ENFORCERS.values():
        is_named = any(f"{module}.affinity.{name}" in weighers for module in WEIGHERS)
        if name.endswith("Weigher") and (has_all_weighers or is_named):
            enabled.add(name)
    return {policy: name for policy, name in ENFORCERS.items() if name not in enabled}


class Planner:
    """Makes the plan of one batch."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database, scheduler: SchedulerAPI) -> None:
        self.max_attempts: int = conf.scheduler.max_attempts
        self._database = database
        self._scheduler = scheduler
        self._unenforced = _unenforced(conf)

    def plan(
        self,
        order: Order,
        instances: Sequence[objects.Instance],
        properties: dict[str, Any],
        legacy_spec: dict[str, Any],
        request_spec: objects.RequestSpec | None,
        given: GivenHostLists | None,
    ) -> tuple[Plan, HostLists]:
        """The plan of a batch, and its hosts by the scheduler or as *given*; raises its errors."""
        uuids = [instance.uuid for instance in instances]
        LOG.debug("Rescheduling: %s", given is not None)
        spec = objects.RequestSpec.from_primitives(legacy_spec, properties)
        if given is not None:
            host_lists = [list(alternates or ()) for alternates in given]
        else:
            if self._fill_in_group([spec], uuids[0]):
                properties.update(_group_properties(spec.instance_group))
            host_lists = self._find(order.context, spec, uuids)
        plan = Plan(order, spec, legacy_spec, properties, request_spec, given is not None)
        return plan, _one_each(host_lists, len(uuids))

    def hosts_for(self, context: RequestContext, specs: Sequence[objects.RequestSpec]) -> HostLists:
        """The candidates for each of *specs*, alike but for their instances; see :meth:`plan`.

        The first speaks for all when the scheduler is asked.
        """
        self._fill_in_group(specs, specs[0].instance_uuid)
        host_lists = self._find(context, specs[0], [spec.instance_uuid for spec in specs])
        return _one_each(host_lists, len(specs))

    def _fill_in_group(self, specs: Sequence[objects.RequestSpec], uuid: str) -> bool:
        """Put the group of the instance, if any, into *specs*; whether there is one.

        Hosts that a request names already are kept, as is a group whose policy is not one of the
        four.  Raises UnsupportedPolicyException.
        """
        with self._database.read() as conn:
            group = group_of(conn, uuid)
            hosts = groups.member_hosts(conn, group) if group else []
        if group is None:
            return False
        policies = ENFORCERS.keys() & set(group.policies or ())
        for policy in sorted(policies & self._unenforced.keys()):
            reason = f"{self._unenforced[policy]} not configured"
            LOG.error("ServerGroup policy is not supported: %s", reason)
            raise errors.UnsupportedPolicyException(reason=reason)
        if not policies:
            return False
        for spec in specs:
            known = (spec.instance_group.hosts if spec.instance_group else None) or []
            spec.instance_group = group.copy()
            spec.instance_group.hosts = sorted({*known, *hosts})
        return True

    def _find(
        self, context: RequestContext, spec: objects.RequestSpec, uuids: list[str]
    ) -> HostLists:
        """Per instance the chosen host and its alternates; raises NoValidHost and other answers."""
        begun = time.monotonic()
        try:
            host_lists: HostLists = self._scheduler.select_destinations(
                context, spec, uuids, return_objects=True, return_alternates=True
            )
        except errors.SelectionObjectsWithOldRPCVersionNotSupported:
            replies = self._repeated_on_timeout(context, spec, uuids)
            host_lists = [[_selection(each)] for each in replies]
        LOG.debug(
            "Took %.2f seconds to select destinations for %d instance(s).",
            time.monotonic() - begun,
            len(uuids),
        )
        return host_lists

    def _repeated_on_timeout(
        self, context: RequestContext, spec: objects.RequestSpec, uuids: list[str]
    ) -> Any:
        for attempt in range(1, self.max_attempts):
            try:
                return self._scheduler.select_destinations(context, spec, uuids)
            except messaging.MessagingTimeout:
                LOG.warning(
                    "Retrying select_destinations after a MessagingTimeout, attempt %s of %s.",
                    attempt,
                    self.max_attempts - 1,
                )
        return self._scheduler.select_destinations(context, spec, uuids)


def _selection(reply: Mapping[str, Any]) -> objects.Selection:
    """The host that an older scheduler names; the chance driver's limits are null."""
    limits = objects.SchedulerLimits.from_dict(reply["limits"] or {})
    return objects.Selection(service_host=reply["host"], nodename=reply["nodename"], limits=limits)


def _group_properties(group: objects.InstanceGroup) -> dict[str, Any]:
    """The filter properties with which older hosts and conductors speak of *group*."""
    return {
        "group_updated": True,
        "group_hosts": list(group.hosts),
        "group_policies": list(group.policies or []),
        "group_members": list(group.members or []),
        "group_uuid": group.uuid,
    }


def _one_each(host_lists: HostLists, count: int) -> HostLists:
    """A list for every one of *count* instances; where none was given, an empty one."""
    return host_lists[:count] + [[] for _ in range(count - len(host_lists))]
