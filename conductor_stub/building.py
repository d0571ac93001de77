"""The second half of a build: book a host, write the rows, tell the host, or tell why not.

Reference page conductor, section 5, step 6 (section 4, step 4), and sections 6 and 11.  A failure
of one instance ends the build of that instance only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import alternates, request_dicts, server_rows, wire_objects
from conductor_stub.alternates import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.planning import Planner
from conductor_stub.records import Candidate, Order, Plan, selections, take_first
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.notifications import Notifications
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

SERVICE = "compute_task"
FIRST_ATTEMPT = 1


@dataclass(frozen=True)
class Failures:
    """Tells of failures; *host* is the name that faults and notifications carry."""

    database: Database
    notifications: Notifications
    host: str

    def end_build(
        self,
        context: RequestContext,
        instance: objects.Instance,
        error: BaseException,
        legacy_spec: Mapping[str, Any],
        attempts: int,
        spec: objects.RequestSpec | None,
    ) -> None:
        """Record *error* as the end of this build, and set the server to ERROR.

        *spec* is the request as the caller gave it, if it was an object; notifications carry it.
        """

        def change(conn: Connection) -> None:
            server_rows.end_build(conn, instance.uuid, error, self.host, attempts)

        _log("build_instances", instance, error)
        LOG.warning("Setting instance to ERROR state.", extra={"instance_uuid": instance.uuid})
        if self._is_written(instance, change):
            self.notifications.task_failed(
                context, f"{SERVICE}.build_instances", instance.uuid, legacy_spec, spec, error
            )

    def end_move(
        self,
        context: RequestContext,
        instance: objects.Instance,
        error: BaseException,
        method: str,
        spec: objects.RequestSpec,
    ) -> None:
        """Tell why nothing came of a move; the server keeps its state."""
        state, uuid = instance.vm_state or "active", instance.uuid

        def change(conn: Connection) -> None:
            instances.update(conn, uuid, vm_state=state, task_state=None)
            server_rows.add_fault(conn, uuid, error, self.host)

        _log(method, instance, error)
        if self._is_written(instance, change):
            legacy, task = request_dicts.legacy_spec_of(spec), f"{SERVICE}.{method}"
            self.notifications.task_failed(context, task, uuid, legacy, spec, error, state)

    def _is_written(self, instance: objects.Instance, change: Callable[[Connection], None]) -> bool:
        """Write the end; False for an instance that is gone: there is nobody to tell."""
        try:
            self.database.write_retrying(change)
        except errors.InstanceNotFound:
            LOG.debug("Instance %s was deleted meanwhile", instance.uuid)
            return False
        return True


def _log(method: str, instance: objects.Instance, error: BaseException) -> None:
    extra = {"instance_uuid": instance.uuid}
    LOG.warning("Failed to %s_%s: %s", SERVICE, method, errors.message_of(error), extra=extra)


class NewServer(NamedTuple):
    """One server that is asked for, and the request for its host."""

    wanted: wire_objects.BuildRequest
    spec: objects.RequestSpec


@dataclass(frozen=True)
class Builder:
    """Sends the instances of a plan to their hosts; *claims* claims alternates first.

    Hosts in no zone are in *default_zone*.
    """

    database: Database
    planner: Planner
    compute: ComputeAPI
    failures: Failures
    claims: Claims
    default_zone: str

    def build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        """Build *instance* on the first candidate to be had; a failure ends this build only."""
        try:
            self._build(plan, instance, candidates)
        except errors.InstanceNotFound:
            LOG.debug("Instance deleted during build", extra={"instance_uuid": instance.uuid})
        except Exception as error:
            LOG.debug("Instance %s is not built", instance.uuid, exc_info=True)
            attempts = request_dicts.attempts(plan.filter_properties)
            context, legacy, spec = plan.order.context, plan.legacy_spec, plan.request_spec
            self.failures.end_build(context, instance, error, legacy, attempts, spec)

    def _build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        elevated, uuid = plan.order.context.elevated(), instance.uuid
        if plan.needs_claim:
            chosen = self.claims.choose(elevated, plan.spec, uuid, candidates)
            alternates.note_providers(plan.request_spec, chosen)
        else:  # the scheduler has booked it already
            chosen = take_first(candidates, uuid)
        properties = request_dicts.populate_filter_properties(plan.filter_properties, chosen)
        attempts = request_dicts.attempts(properties)
        zone = self.default_zone if self.compute.takes_spec_objects() else None
        prepared = self.database.write_retrying(
            lambda conn: server_rows.prepare_build(conn, instance, chosen, attempts, zone)
        )
        if prepared is None:  # the user has cancelled the build
            self.claims.release(elevated, uuid)
            if plan.is_new:
                self.database.write_retrying(lambda conn: server_rows.destroy_instance(conn, uuid))
            return
        LOG.debug(
            "Selected host: %s; Selected node: %s; Alternates: %s",
            chosen.host,
            chosen.node,
            [(each.host, each.node) for each in candidates],
            extra={"instance_uuid": uuid},
        )
        self.compute.cast(
            plan.order.context,
            chosen.host,
            "build_and_run_instance",
            **plan.order.arguments(),
            instance=prepared[0],
            request_spec=_spec_for_host(plan, properties, chosen),
            legacy_spec=plan.legacy_spec,
            filter_properties=properties,
            block_device_mapping=prepared[1],
            node=chosen.node,
            limits=chosen.limits,
            host_list=selections(candidates),
            accel_uuids=[],
        )

    def build_new(self, order: Order, servers: Sequence[NewServer]) -> None:
        """Have *servers* built that nothing has been written about but what their user wants.

        Where there is no host for all of them, all end in ERROR.
        """
        if not servers:
            return
        try:
            found = self.planner.hosts_for(order.context, [each.spec for each in servers])
        except Exception as error:
            LOG.debug("No hosts for %d new instance(s)", len(servers), exc_info=True)
            for server in servers:
                if self._create(server):
                    self._fail(order, server, error)
            return
        for server, candidates in zip(servers, found, strict=True):
            uuid = server.wanted.instance_uuid
            if not self._create(server):
                LOG.info("What is booked for instance %s is given back", uuid)
                self.claims.release(order.context.elevated(), uuid)
                continue
            try:
                plan = self._plan_of_new(order, server.spec)
            except Exception as error:
                LOG.debug("Instance %s has no plan", uuid, exc_info=True)
                self._fail(order, server, error)
                continue
            self.build(plan, server.wanted.instance, candidates)

    def _plan_of_new(self, order: Order, spec: objects.RequestSpec) -> Plan:
        """The plan of one server that has no attempt behind it."""
        properties = spec.to_legacy_filter_properties_dict()
        uuid, most = spec.instance_uuid, self.planner.max_attempts
        return Plan(
            order=order,
            spec=spec,
            legacy_spec=request_dicts.legacy_spec_of(spec),
            filter_properties=request_dicts.populate_retry(properties, uuid, most),
            request_spec=spec,
            needs_claim=False,
            is_new=True,
        )

    def _create(self, server: NewServer) -> bool:
        """Make the row of *server*; False for one that its user does not want any more."""
        wanted = server.wanted
        return self.database.write_retrying(lambda conn: server_rows.create_server(conn, wanted))

    def _fail(self, order: Order, server: NewServer, error: Exception) -> None:
        legacy, instance = request_dicts.legacy_spec_of(server.spec), server.wanted.instance
        self.failures.end_build(order.context, instance, error, legacy, FIRST_ATTEMPT, server.spec)


def _spec_for_host(
    plan: Plan, properties: dict[str, object], chosen: Candidate
) -> objects.RequestSpec:
    if plan.is_new:
        spec = plan.spec.copy()
        alternates.note_providers(spec, chosen)
        return spec
    spec = objects.RequestSpec.from_primitives(plan.legacy_spec, properties)
    if plan.request_spec is not None:
        spec.requested_resources = plan.request_spec.requested_resources
    return spec
