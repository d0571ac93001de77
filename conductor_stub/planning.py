"""The first half of ``build_instances``: count the attempt, make the request, find hosts.

Reference page conductor, section 5, steps 2 to 4 (section 4, step 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from conductor_stub import groups, retry, scheduling
from conductor_stub.records import HostLists, Order, Plan
from scheduler import errors, objects
from scheduler.db import groups as group_rows
from scheduler.db.database import Database
from scheduler.rpc.client import SchedulerAPI

LOG = logging.getLogger(__name__)

GivenHostLists = Sequence[list[objects.Selection] | None]


@dataclass(frozen=True)
class Planner:
    """Makes the plan of one batch; *max_attempts* is ``[scheduler] max_attempts``."""

    database: Database
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

    def _with_group(self, properties: Mapping[str, Any], uuid: str) -> dict[str, Any]:
        with self.database.read() as conn:
            try:
                group = group_rows.by_instance(conn, uuid)
            except errors.InstanceGroupNotFound:
                return dict(properties)
            hosts = group_rows.member_hosts(conn, group)
        return groups.setup_instance_group(properties, group, hosts, self.policies)


def _one_each(host_lists: HostLists, count: int) -> HostLists:
    """A list for every one of *count* instances; where none was given, an empty one."""
    return host_lists[:count] + [[] for _ in range(count - len(host_lists))]
