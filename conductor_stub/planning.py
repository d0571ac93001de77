"""The first half of a build: count the attempt, make the request, find hosts.

Reference page conductor, section 5, steps 2 to 4 (section 4, step 3), and section 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from conductor_stub import groups, retry, scheduling
from conductor_stub.records import Candidate, HostLists, Order, Plan
from conductor_stub.request_specs import legacy_spec_of
from conductor_stub.stores import Stores
from scheduler import errors, objects
from scheduler.db import groups as group_rows
from scheduler.rpc.client import SchedulerAPI
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

GivenHostLists = Sequence[list[objects.Selection] | None]


@dataclass(frozen=True)
class Planner:
    """Makes the plan of one batch; *max_attempts* is ``[scheduler] max_attempts``."""

    stores: Stores
    scheduler: SchedulerAPI
    policies: groups.PolicySupport
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
        """Where the instances go: to the alternates *given*, or where the scheduler says.

        Raises MaxRetriesExceeded, UnsupportedPolicyException or what the scheduler answers.
        """
        first, uuids = instances[0].uuid, [instance.uuid for instance in instances]
        properties = retry.populate_retry(properties, first, self.max_attempts)
        LOG.debug("Rescheduling: %s", given is not None)
        if given is None:
            properties = self._with_group(properties, first)
        spec = objects.RequestSpec.from_primitives(legacy_spec, properties)
        if given is None:
            host_lists = scheduling.find_hosts(
                self.scheduler, order.context, spec, uuids, self.max_attempts
            )
        else:
            host_lists = [
                [scheduling.candidate_of_selection(each) for each in alternates or ()]
                for alternates in given
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

    def plan_new(
        self, order: Order, specs: Sequence[objects.RequestSpec]
    ) -> list[tuple[objects.RequestSpec, list[Candidate]]]:
        """Each of *specs*, which are alike but for their instances, and where its one may go.

        The first speaks for all when the scheduler is asked.  Raises what :meth:`plan` does.
        """
        first = specs[0]
        found = group_of(self.stores, first.instance_uuid)
        if found is not None:
            groups.fill_in_group(specs, *found, self.policies)
        uuids = [spec.instance_uuid for spec in specs]
        host_lists = scheduling.find_hosts(
            self.scheduler, order.context, first, uuids, self.max_attempts
        )
        return list(zip(specs, _one_each(host_lists, len(specs)), strict=True))

    def hosts_for(self, context: RequestContext, spec: objects.RequestSpec) -> list[Candidate]:
        """Where the one server of *spec* may go, which exists already; raises as :meth:`plan`."""
        found = group_of(self.stores, spec.instance_uuid)
        if found is not None:
            groups.fill_in_group([spec], *found, self.policies)
        host_lists = scheduling.find_hosts(
            self.scheduler, context, spec, [spec.instance_uuid], self.max_attempts
        )
        return _one_each(host_lists, 1)[0]

    def of_new(self, order: Order, spec: objects.RequestSpec, candidates: list[Candidate]) -> Plan:
        """The plan of one server that has no attempt behind it."""
        properties = retry.populate_retry(
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
        return groups.setup_instance_group(properties, *found, self.policies)


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
