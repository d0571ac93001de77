"""The second half of a build: book a host, write the rows, tell the host, or tell why not.

Reference page conductor, section 5, step 6 (section 4, step 4), and sections 6 and 11.  A failure
of one instance ends the build of that instance only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_log import log as logging

from conductor_stub import alternates, request_dicts, server_rows, wire_objects
from conductor_stub.alternates import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.failures import Failures
from conductor_stub.planning import Planner
from conductor_stub.records import HostList, Order, Plan, limits_of, take_first
from scheduler import errors, objects
from scheduler.db.database import Database

LOG = logging.getLogger(__name__)

FIRST_ATTEMPT = 1


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

    def build(self, plan: Plan, instance: objects.Instance, candidates: HostList) -> None:
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

    def _build(self, plan: Plan, instance: objects.Instance, candidates: HostList) -> None:
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
            chosen.service_host,
            chosen.nodename,
            [(each.service_host, each.nodename) for each in candidates],
            extra={"instance_uuid": uuid},
        )
        self.compute.cast(
            plan.order.context,
            chosen.service_host,
            "build_and_run_instance",
            **plan.order.arguments(),
            instance=prepared[0],
            request_spec=_spec_for_host(plan, properties, chosen),
            legacy_spec=plan.legacy_spec,
            filter_properties=properties,
            block_device_mapping=prepared[1],
            node=chosen.nodename,
            limits=limits_of(chosen),
            host_list=candidates,
            accel_uuids=[],
        )

    def build_new(
        self,
        order: Order,
        servers: Sequence[wire_objects.BuildRequest],
        specs: Sequence[objects.RequestSpec],
    ) -> None:
        """Have *servers* built that nothing has been written about but what their user wants.

        Each has one of *specs*.  Where there is no host for all of them, all end in ERROR.
        """
        try:
            found = self.planner.hosts_for(order.context, specs)
        except Exception as error:
            LOG.debug("No hosts for %d new instance(s)", len(servers), exc_info=True)
            for wanted, spec in zip(servers, specs, strict=True):
                if self._create(wanted):
                    self._fail(order, wanted, spec, error)
            return
        for wanted, spec, candidates in zip(servers, specs, found, strict=True):
            if not self._create(wanted):
                LOG.info("What is booked for instance %s is given back", wanted.instance_uuid)
                self.claims.release(order.context.elevated(), wanted.instance_uuid)
                continue
            try:
                plan = self._plan_of_new(order, spec)
            except Exception as error:
                LOG.debug("Instance %s has no plan", wanted.instance_uuid, exc_info=True)
                self._fail(order, wanted, spec, error)
                continue
            self.build(plan, wanted.instance, candidates)

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

    def _create(self, wanted: wire_objects.BuildRequest) -> bool:
        """Make the row of a server; False for one that its user does not want any more."""
        return self.database.write_retrying(lambda conn: server_rows.create_server(conn, wanted))

    def _fail(
        self,
        order: Order,
        wanted: wire_objects.BuildRequest,
        spec: objects.RequestSpec,
        error: Exception,
    ) -> None:
        legacy = request_dicts.legacy_spec_of(spec)
        self.failures.end_build(order.context, wanted.instance, error, legacy, FIRST_ATTEMPT, spec)


def _spec_for_host(
    plan: Plan, properties: dict[str, object], chosen: objects.Selection
) -> objects.RequestSpec:
    if plan.is_new:
        spec = plan.spec.copy()
        alternates.note_providers(spec, chosen)
        return spec
    spec = objects.RequestSpec.from_primitives(plan.legacy_spec, properties)
    if plan.request_spec is not None:
        spec.requested_resources = plan.request_spec.requested_resources
    return spec
