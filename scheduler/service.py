"""The scheduler's worker: what is started and in which order (reference page service, 2)."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from scheduler import drivers
from scheduler.builds.direct import DirectBuilds
from scheduler.builds.rows import SERVICE, InstanceBook
from scheduler.builds.tasks import OlderTasks
from scheduler.claims import backend
from scheduler.claims.booking import Booking
from scheduler.conf import rereading
from scheduler.db.cells_reader import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.drivers.loading import load_host_manager
from scheduler.explain.store import Store
from scheduler.health import IDLE_LOOK_SECONDS, IdleLook, WorkerHealth
from scheduler.heartbeat import Heartbeat
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.steady_clock import SteadyClock
from scheduler.introspection.serving import serve_introspection
from scheduler.manager import SchedulerManager
from scheduler.notifications.notifications import Notifications
from scheduler.notifications.notifier import Notifier
from scheduler.observation import Observation
from scheduler.periodic import RepeatingTask
from scheduler.readiness import Readiness
from scheduler.reloading import Outcome, PutInForce
from scheduler.rpc.compute_client import ComputeClient
from scheduler.rpc.context import get_admin_context
from scheduler.rpc.endpoints import SchedulerEndpoint
from scheduler.rpc.older_endpoints import HavanaEndpoint, IcehouseEndpoint
from scheduler.rpc.serializer import ObjectSerializer
from scheduler.rpc.server import BaseAPI, Server, build_server
from scheduler.rpc.transport import get_notification_transport, get_transport
from scheduler.status_page.live import LiveStatus
from scheduler.status_page.page import StatusPage
from scheduler.supervision import Supervision
from scheduler.tracing import loading as tracing
from scheduler.watchdog import Report
from scheduler.worker import Worker

BINARY: Final = "nova-scheduler"
PERIODIC_JITTER: Final = 0.05
"""Keeps daemons that were started together from reading the database in step."""


def build_manager(
    conf: cfg.ConfigOpts, databases: Databases, elapsed: Callable[[], float] = time.monotonic
) -> SchedulerManager:
    """The manager with the configured driver and host manager; nothing connects yet.

    *elapsed* gives seconds that never go back, by which rows that were written settle.
    Raises an error that names the option when one of them, or a filter or weigher, is unknown.
    """
    claims = backend.of_conf(conf, databases.main)
    clock = SteadyClock(databases.main.server_time)
    reader = CellsReader.from_conf(conf, databases, elapsed)
    host_manager = load_host_manager(conf, reader, claims.books(clock))
    if isinstance(host_manager, HostManager):
        host_manager.keep_time_by(clock)
    driver = drivers.load(conf, host_manager)
    driver.booking = claims.booking(host_manager) if claims.serves(driver) else Booking()
    return SchedulerManager(conf, driver)


@dataclass(frozen=True)
class BuildResources:
    """What builds by the scheduler itself write to."""

    database: Database
    notifier: Notifier
    host: str


def older_tasks(
    conf: cfg.ConfigOpts,
    manager: SchedulerManager,
    database: Database,
    transport: RPCTransport,
    notifier: Notifier,
) -> OlderTasks:
    """What serves callers up to Juno; from now on the driver can tell hosts to build."""
    driver = manager.driver
    book = InstanceBook(BuildResources(database, notifier, conf.host))
    compute = ComputeClient(transport, conf.compute_topic)
    builds = DirectBuilds(driver, book, compute, notifier, conf.scheduler.max_attempts)
    for each in {id(one): one for one in (driver, getattr(driver, "driver", driver))}.values():
        each.notifier, each.builds = notifier, builds
    return OlderTasks(builds, manager, database)


class Service(Worker):
    """One worker of the scheduler."""

    LIVE = rereading.LIVE
    DECISIONS = frozenset({"select_destinations", "select_hosts", "run_instance", "prep_resize"})

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        readiness: Readiness,
        supervision: Supervision,
        observation: Observation,
    ) -> None:
        super().__init__(conf, readiness, supervision, conf.scheduler_topic)
        self._observation = observation
        self._page = StatusPage(observation.workers)
        self._page.add_to(observation.routes)
        self._manager: SchedulerManager | None = None
        self._task: RepeatingTask | None = None
        self._server: Server | None = None

    @property
    def driver(self) -> Any:
        """The driver that decides; there is one from the start on."""
        if self._manager is None:
            raise RuntimeError("the scheduler was not started")
        return self._manager.driver

    def _start(self, ending: contextlib.ExitStack) -> None:
        """Start everything; *ending* learns how to end it, in the reverse order."""
        stuck_seconds = self._conf.metrics_endpoint.stuck_seconds
        health = WorkerHealth(self._progress, stuck_seconds, lambda: self.stage)
        self._observation.reports.begin(self._progress)
        self._observation.serve(health, self._supervision.board.workers, ending)
        databases = Databases.from_conf(self._conf)
        ending.callback(databases.dispose)
        self._manager = manager = build_manager(self.conf_in_force, databases)
        self._observation.watch_manager(manager, self._conf)
        store = Store.from_conf(self._conf, databases.main)
        if store is not None:
            store.start()
            ending.callback(store.close)
            manager.recorder.listeners.append(store.put)
        heartbeat = Heartbeat(self._conf, databases.main, BINARY, self._topic)
        heartbeat.register()
        manager.driver.host_manager.refresh()
        manager.driver.booking.prepare()
        if self._observation.is_enabled:
            self._page.live = LiveStatus(self._conf, manager)
        ending.callback(heartbeat.stop)
        self._task = task = self._periodic_task(manager)
        ending.callback(task.stop)
        self._serve(manager, databases.main, ending)
        if self._observation.is_enabled:
            self._look_when_idle(manager, ending)
        heartbeat.start()
        if self._conf.periodic_enable:
            task.start(random.uniform(0, self._conf.periodic_fuzzy_delay))

    def _look_when_idle(self, manager: SchedulerManager, ending: contextlib.ExitStack) -> None:
        period_seconds = max(0, self._conf.scheduler.periodic_task_interval)
        look = IdleLook(manager.driver.host_manager, period_seconds)
        task = RepeatingTask("a look at the hosts", look, IDLE_LOOK_SECONDS)
        ending.callback(task.stop)
        task.start(IDLE_LOOK_SECONDS)

    def _serve(
        self, manager: SchedulerManager, database: Database, ending: contextlib.ExitStack
    ) -> None:
        transport = get_transport(self._conf)
        ending.callback(transport.cleanup)
        notification_transport = get_notification_transport(self._conf)
        ending.callback(notification_transport.cleanup)
        notifications = Notifications(notification_transport, SERVICE, BINARY, self._conf.host)
        ending.callback(notifications.close)
        manager.notifications = notifications
        serve_introspection(self._conf, manager, self._supervision.board, transport, ending)
        tasks = older_tasks(self._conf, manager, database, transport, notifications.legacy)
        endpoints = [
            SchedulerEndpoint(manager),
            HavanaEndpoint(tasks),
            IcehouseEndpoint(tasks),
            BaseAPI(SERVICE),
        ]
        server = build_server(
            transport,
            self._topic,
            self._conf.host,
            endpoints,
            self._progress,
            entities=self._traced(manager, ending),
        )
        self._server = server
        manager.recorder.put_off = server.afterwards.put_off
        self._observation.watch_bus(server, notifications.outbox, ending)
        server.start()  # waits for the broker for as long as it takes
        ending.callback(server.wait)
        ending.callback(server.stop)

    def _traced(
        self, manager: SchedulerManager, ending: contextlib.ExitStack
    ) -> oslo_messaging.NoOpSerializer:
        """What decodes arguments; with spans of that, and of the decisions, if they are wanted."""
        spans = tracing.load(self._conf, BINARY)
        if spans is None:
            return ObjectSerializer()
        manager.recorder.listeners.append(spans.decided)
        ending.callback(spans.flush)
        return spans.serializer(ObjectSerializer())

    def _periodic_task(self, manager: SchedulerManager) -> RepeatingTask:
        driver = manager.driver
        return RepeatingTask(
            f"{type(driver).__name__}.run_periodic_tasks",
            lambda: driver.run_periodic_tasks(get_admin_context()),
            self.conf_in_force.scheduler.periodic_task_interval,
            PERIODIC_JITTER,
        )

    def _report(self) -> Report:
        manager, server = self._manager, self._server
        if manager is None or server is None:
            return Report()
        hosts = manager.driver.host_manager
        table = getattr(hosts, "table", None)  # an operator's own host manager may have none
        return Report(
            hosts=None if table is None else len(table),
            state_age_seconds=getattr(hosts, "state_age_seconds", None),
            decided=self._progress.decided,
            is_listening=server.is_listening,
        )

    def _reloaded(self, outcome: Outcome) -> None:
        self._observation.reloaded(outcome.value)

    def _build(self, conf: cfg.ConfigOpts) -> PutInForce:
        manager, task = self._manager, self._task
        if manager is None or task is None:
            databases = Databases.from_conf(conf)
            try:
                build_manager(conf, databases)
            finally:
                databases.dispose()
            return lambda: None
        take = manager.reconfigured(conf)

        def put_in_force() -> None:
            take()
            if conf.periodic_enable:
                task.respace(conf.scheduler.periodic_task_interval)

        return put_in_force
