"""The conductor's worker: what it consists of and in which order it starts.

Reference pages conductor, section 2, and service, section 2.
"""

from __future__ import annotations

import contextlib
from typing import Final

from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from conductor_stub.backports import BackportAPI
from conductor_stub.building import Builder
from conductor_stub.claims import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import TOPIC
from conductor_stub.failure import SERVICE, FailureBranch
from conductor_stub.groups import PolicySupport
from conductor_stub.hooks import BuildHooks
from conductor_stub.manager import ComputeTaskManager
from conductor_stub.planning import Planner
from conductor_stub.rows import BuildRows
from conductor_stub.stores import Stores
from scheduler import objects
from scheduler.claims import backend
from scheduler.claims.alternates import AlternateClaims
from scheduler.claims.placement.alternates import PlacementAlternates
from scheduler.db import services
from scheduler.db.databases import Databases
from scheduler.heartbeat import Heartbeat
from scheduler.notifications.notifications import Notifications
from scheduler.readiness import Readiness
from scheduler.rpc.client import SchedulerAPI
from scheduler.rpc.server import BaseAPI, build_server
from scheduler.rpc.transport import get_notification_transport, get_transport
from scheduler.supervision import Supervision
from scheduler.worker import Worker

BINARY: Final = "nova-conductor"


def compute_api(
    conf: cfg.ConfigOpts, stores: Stores, transport: RPCTransport, retry: int | None = None
) -> ComputeAPI:
    """The casts to the compute hosts in *stores*; raises ConfigurationError for a bad cap."""

    def lowest_version() -> int | None:
        known: list[objects.Service] = []
        for database in stores.of_cells():
            with database.read() as conn:
                known += services.list_all(conn, services.COMPUTE_BINARY)
        return min((each.version or 0 for each in known if not each.forced_down), default=None)

    return ComputeAPI(transport, conf, lowest_version, retry)


def claims_of(conf: cfg.ConfigOpts, stores: Stores) -> Claims:
    """Who books alternates, as ``[scheduler] claims`` says.

    Raises ConfigurationError for a URL, or a way to log in, that cannot be used.
    """
    if conf.scheduler.claims == backend.PLACEMENT:
        allocations = PlacementAlternates.from_conf(conf)
        return Claims(claim=allocations.claim, release=allocations.release)
    if conf.scheduler.claims != backend.DATABASE:
        return Claims()
    alternates = AlternateClaims(
        conf, stores.main, lambda selection: stores.of_host(selection.service_host)
    )
    return Claims(claim=alternates.claim, release=alternates.release)


def build_manager(
    conf: cfg.ConfigOpts,
    stores: Stores,
    transport: RPCTransport,
    notifications: Notifications,
    hooks: BuildHooks | None = None,
    claims: Claims | None = None,
) -> ComputeTaskManager:
    """The manager with everything it works with; nothing connects yet.

    Raises ConfigurationError for a version cap that cannot be used.
    """
    hooks = hooks or BuildHooks()
    failures = FailureBranch(stores, notifications, hooks, conf.host)
    planner = Planner(
        stores, SchedulerAPI(transport, conf), PolicySupport(conf), conf.scheduler.max_attempts
    )
    builder = Builder(
        rows=BuildRows(stores, conf.default_availability_zone),
        compute=compute_api(conf, stores, transport),
        failures=failures,
        hooks=hooks,
        claims=claims or Claims(),
    )
    return ComputeTaskManager(stores, planner, builder, failures)


def check_manager(conf: cfg.ConfigOpts, databases: Databases) -> None:
    """Build the manager and let it go again; raises what :func:`build_manager` does."""
    with contextlib.ExitStack() as ending:
        transport = get_transport(conf)
        ending.callback(transport.cleanup)
        build_manager(conf, Stores(databases), transport, _notifications(conf, ending))


def _notifications(conf: cfg.ConfigOpts, ending: contextlib.ExitStack) -> Notifications:
    transport = get_notification_transport(conf)
    ending.callback(transport.cleanup)
    notifications = Notifications(transport, SERVICE, BINARY, conf.host)
    ending.callback(notifications.close)
    return notifications


class ConductorWorker(Worker):
    """One worker of the conductor stub."""

    def __init__(
        self, conf: cfg.ConfigOpts, readiness: Readiness, supervision: Supervision
    ) -> None:
        super().__init__(conf, readiness, supervision, TOPIC)

    def _start(self, ending: contextlib.ExitStack) -> None:
        databases = Databases.from_conf(self._conf)
        ending.callback(databases.dispose)
        transport = get_transport(self._conf)
        ending.callback(transport.cleanup)
        notifications = _notifications(self._conf, ending)
        stores = Stores(databases)
        claims = claims_of(self._conf, stores)
        manager = build_manager(self._conf, stores, transport, notifications, claims=claims)
        heartbeat = Heartbeat(self._conf, databases.main, BINARY, TOPIC)
        heartbeat.register()
        ending.callback(heartbeat.stop)
        endpoints = [manager, BackportAPI(), BaseAPI(TOPIC)]
        server = build_server(transport, TOPIC, self._conf.host, endpoints)
        server.start()  # waits for the broker for as long as it takes
        ending.callback(server.wait)
        ending.callback(server.stop)
        heartbeat.start()
