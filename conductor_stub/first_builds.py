"""New servers as since Ocata: the conductor makes their rows once their cells are known.

Reference page conductor, section 11.  Each server is on its own here as in every build; only
finding hosts, and the quota, are for all of a request together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oslo_log import log as logging

from conductor_stub.building import Builder
from conductor_stub.failure import FailureBranch
from conductor_stub.planning import Planner
from conductor_stub.records import Candidate, Order, Plan
from conductor_stub.request_specs import legacy_spec_of
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

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
            found = self.planner.plan_new(order, [each.spec for each in servers])
        except Exception as error:
            LOG.debug("No hosts for %d new instance(s)", len(servers), exc_info=True)
            for server in servers:
                self._bury(order, server, error)
            return
        created = [
            (server, candidates)
            for server, (_, candidates) in zip(servers, found, strict=True)
            if self._create(order, server, candidates)
        ]
        try:
            self.builder.hooks.check_quota(order.context, [each.instance for each, _ in created])
        except Exception as error:
            LOG.debug("Too many new instances", exc_info=True)
            for server, _ in created:
                self._fail(order, server, error)
            return
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
