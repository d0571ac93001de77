"""The second half of a build: book a host, write the rows, tell the host.

Reference page conductor, section 5, step 6 (section 4, step 4), and section 11.  A failure of
one instance ends the build of that instance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_log import log as logging

from conductor_stub import claims, request_dicts
from conductor_stub.claims import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.failure import FailureBranch
from conductor_stub.planning import Planner
from conductor_stub.records import Candidate, Order, Plan
from conductor_stub.request_dicts import legacy_spec_of
from conductor_stub.stores import BuildRows
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Builder:
    """Sends the instances of a plan to their hosts; *claims* claims alternates first."""

    rows: BuildRows
    compute: ComputeAPI
    failures: FailureBranch
    claims: Claims

    def build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        """Build *instance* on the first candidate to be had; a failure ends this build only."""
        order = plan.order
        try:
            self._build(plan, instance, candidates)
        except errors.InstanceNotFound:
            LOG.debug("Instance deleted during build", extra={"instance_uuid": instance.uuid})
        except Exception as error:
            LOG.debug("Instance %s is not built", instance.uuid, exc_info=True)
            attempts = request_dicts.attempts(plan.filter_properties)
            self.failures.fail(
                order, instance, error, plan.legacy_spec, attempts, plan.request_spec
            )

    def _build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        position = self._choose(plan, instance.uuid, candidates)
        chosen, rest = candidates[position], candidates[position + 1 :]
        properties = request_dicts.populate_filter_properties(
            plan.filter_properties, chosen.host, chosen.node, chosen.limits
        )
        attempts = request_dicts.attempts(properties)
        zone_from_host = self.compute.takes_spec_objects()
        prepared = self.rows.prepare(instance, chosen, attempts, zone_from_host)
        if prepared is None:
            self._drop(plan, instance)
            return
        _log_selected(prepared.instance.uuid, chosen, rest)
        self.compute.cast(
            plan.order.context,
            chosen.host,
            "build_and_run_instance",
            **plan.order.arguments(),
            instance=prepared.instance,
            request_spec=self._spec_for_host(plan, properties, chosen),
            legacy_spec=plan.legacy_spec,
            filter_properties=properties,
            block_device_mapping=prepared.block_devices,
            node=chosen.node,
            limits=chosen.limits,
            host_list=[each.selection for each in rest if each.selection is not None],
            accel_uuids=[],
        )

    def _choose(self, plan: Plan, uuid: str, candidates: list[Candidate]) -> int:
        if plan.needs_claim:
            context = plan.order.context.elevated()
            position = claims.book_first(self.claims.claim, context, plan.spec, uuid, candidates)
            claims.booked_providers(plan.request_spec, candidates[position])
            return position
        if not candidates:
            raise errors.NoValidHost(reason=f"The scheduler named no host for instance {uuid}.")
        return 0  # the scheduler has booked it already

    def _drop(self, plan: Plan, instance: objects.Instance) -> None:
        """The user cancelled the build: what was booked for it is free again."""
        self.claims.release(plan.order.context.elevated(), instance.uuid)
        if plan.is_new:
            self.rows.destroy(instance.uuid)

    @staticmethod
    def _spec_for_host(
        plan: Plan, properties: dict[str, object], chosen: Candidate
    ) -> objects.RequestSpec:
        if plan.is_new:
            spec = plan.spec.copy()
            claims.booked_providers(spec, chosen)
            return spec
        spec = objects.RequestSpec.from_primitives(plan.legacy_spec, properties)
        if plan.request_spec is not None:
            spec.requested_resources = plan.request_spec.requested_resources
        return spec


def _log_selected(uuid: str, chosen: Candidate, rest: list[Candidate]) -> None:
    LOG.debug(
        "Selected host: %s; Selected node: %s; Alternates: %s",
        chosen.host,
        chosen.node,
        [(each.host, each.node) for each in rest],
        extra={"instance_uuid": uuid},
    )


FIRST_ATTEMPT = 1


@dataclass(frozen=True)
class NewServer:
    """One server that is asked for, and the request for its host."""

    wanted: objects.BuildRequest
    spec: objects.RequestSpec

    @property
    def instance(self) -> objects.Instance:
        """The server, which has no row yet."""
        instance: objects.Instance = self.wanted.instance
        return instance


@dataclass(frozen=True)
class FirstBuilds:
    """Builds servers that nothing has been written about but what their user wants."""

    planner: Planner
    builder: Builder
    failures: FailureBranch

    def run(self, order: Order, servers: Sequence[NewServer]) -> None:
        """Have *servers* built; where there is no host for all of them, all end in ERROR."""
        if not servers:
            return
        try:
            found = self.planner.hosts_for(order.context, [each.spec for each in servers])
        except Exception as error:
            LOG.debug("No hosts for %d new instance(s)", len(servers), exc_info=True)
            for server in servers:
                self._bury(order, server, error)
            return
        created = [
            (server, candidates)
            for server, candidates in zip(servers, found, strict=True)
            if self._create(order, server, candidates)
        ]
        for server, candidates in created:
            self._build(order, server, candidates)

    def _create(self, order: Order, server: NewServer, candidates: list[Candidate]) -> bool:
        """Make the row of *server* where its host is; False when that is not to be built."""
        try:
            if not candidates:
                reason = f"The scheduler named no host for instance {server.instance.uuid}."
                raise errors.NoValidHost(reason=reason)
            host = candidates[0].host
            if not self.builder.rows.is_mapped(host):
                raise errors.HostMappingNotFound(name=host)
            if self.builder.rows.create(server.wanted, host):
                return True
        except Exception as error:
            LOG.debug("Instance %s has no cell", server.instance.uuid, exc_info=True)
            self._release(order.context, server)
            self._bury(order, server, error)
            return False
        self._release(order.context, server)
        return False

    def _build(self, order: Order, server: NewServer, candidates: list[Candidate]) -> None:
        try:
            plan: Plan = self.planner.of_new(order, server.spec, candidates)
        except Exception as error:
            LOG.debug("Instance %s has no plan", server.instance.uuid, exc_info=True)
            self._fail(order, server, error)
            return
        self.builder.build(plan, server.instance, candidates)

    def _bury(self, order: Order, server: NewServer, error: Exception) -> None:
        """Record *server* in cell0, in ERROR; one that its user does not want any more is not."""
        if self.builder.rows.create(server.wanted, None):
            self._fail(order, server, error)

    def _fail(self, order: Order, server: NewServer, error: Exception) -> None:
        self.failures.fail(
            order, server.instance, error, legacy_spec_of(server.spec), FIRST_ATTEMPT, server.spec
        )

    def _release(self, context: RequestContext, server: NewServer) -> None:
        LOG.info("What is booked for instance %s is given back", server.instance.uuid)
        self.builder.claims.release(context.elevated(), server.instance.uuid)
