"""``nova-scheduler``: parse, check, build, run (reference page service, sections 1 to 3)."""

import contextlib
import functools
import importlib
import os
import random
from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.transport import RPCTransport

from scheduler import concurrency, drivers, errors, plugins
from scheduler.builds.direct import SERVICE, DirectBuilds, InstanceRows
from scheduler.builds.tasks import HavanaTasks, IcehouseTasks
from scheduler.claims import loading
from scheduler.conf import filter_scheduler, rereading, startup
from scheduler.daemon import preflight
from scheduler.daemon.health import IDLE_LOOK_SECONDS, WorkerHealth, look_when_idle
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.periodic import RepeatingTask, ServiceHeartbeat
from scheduler.daemon.reload import Outcome, PutInForce
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker import Worker, launch
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases, discover_hosts
from scheduler.db.overview import Overview
from scheduler.drivers.loading import load_host_manager
from scheduler.explain.store import Store
from scheduler.hosts.refresh import SteadyClock
from scheduler.introspection.endpoint import serve_introspection
from scheduler.manager import SchedulerManager
from scheduler.metrics import readings
from scheduler.notifications import Notifications, Notifier
from scheduler.pci.aliases import parse_aliases
from scheduler.recording.journal import Journal
from scheduler.rpc.client import ComputeClient
from scheduler.rpc.context import get_admin_context
from scheduler.rpc.dispatcher import BaseAPI, SchedulerEndpoint
from scheduler.rpc.server import Server
from scheduler.rpc.transport import (
    flush_spans,
    get_notification_transport,
    get_transport,
    is_in_process,
    set_defaults,
)
from scheduler.status_page.live import LiveStatus
from scheduler.status_page.page import StatusPage

LOG = logging.getLogger(__name__)

BINARY: Final = "nova-scheduler"
DESCRIPTION = "Answers select_destinations on the message bus: which host gets each new server."
CLI_OPTIONS: Final = (
    cfg.BoolOpt(
        "shadow",
        default=False,
        help="Decide copies of another scheduler's requests, and compare; answer nobody.",
    ),
)
BESIDE_SECONDS: Final = 0.5
PERIODIC_JITTER: Final = 0.05
"""Keeps daemons that were started together from reading the database in step."""


def build_manager(
    conf: cfg.ConfigOpts,
    databases: Databases,
    notifications: Notifications | None = None,
    builds: DirectBuilds | None = None,
) -> SchedulerManager:
    """The manager with the configured driver and host manager; nothing connects yet.

    Without *notifications* none are sent; without *builds* callers up to Juno cannot be served.
    Raises an error that names the option when one of them, or a filter or weigher, is unknown.
    """
    plugins.prepare(conf)
    clock = SteadyClock(databases.main.server_time)
    reader = CellsReader(conf, databases)
    reservations = loading.reservations_from_conf(conf, databases.main, clock)
    host_manager = load_host_manager(conf, reader, reservations)
    host_manager.keep_time_by(clock)
    claims = loading.claims_from_conf(conf, host_manager, drivers.called_class(conf))
    notifier = None if builds is None else builds.rows.notifier
    driver = drivers.load(conf, host_manager, claims=claims, builds=builds, notifier=notifier)
    return SchedulerManager(conf, driver, notifications)


def direct_builds(
    conf: cfg.ConfigOpts, database: Database, compute: ComputeClient, notifier: Notifier
) -> DirectBuilds:
    """Builds that the scheduler sends to hosts itself, for callers up to Juno."""
    rows = InstanceRows(database, notifier, conf.host)
    return DirectBuilds(rows, compute, conf.scheduler.max_attempts)


class Service(Worker):
    LIVE = rereading.LIVE

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        readiness: Readiness,
        worker_table: WorkerTable,
        monitoring: Monitoring,
    ) -> None:
        super().__init__(conf, readiness, worker_table, conf.scheduler_topic)
        self._monitoring = monitoring
        page = StatusPage(monitoring.workers, monitoring.hub, lambda: self._live)
        page.add_to(monitoring.routes)
        self._live: LiveStatus | None = None
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
        conf, monitoring = self._conf, self._monitoring
        monitoring.reports.begin(self._in_flight, lambda: self._manager)
        monitoring.serve(self._health(), self.table, ending)
        databases = Databases.from_conf(conf)
        ending.callback(databases.dispose)
        transport = get_transport(conf)
        ending.callback(transport.cleanup)
        ending.callback(flush_spans, conf)
        notifications = self._notifications(ending)
        compute = ComputeClient(transport, conf.compute_topic)
        builds = direct_builds(conf, databases.main, compute, notifications.legacy)
        self._manager = manager = build_manager(
            self.conf_in_force, databases, notifications=notifications, builds=builds
        )
        overview = Overview(databases, conf, BINARY)
        monitoring.watch_manager(manager, conf, overview)
        self._store_records(manager, databases.main, ending)
        own_database = Database.from_conf(conf)
        ending.callback(own_database.dispose)
        heartbeat = ServiceHeartbeat(conf, own_database, BINARY, self._topic)
        heartbeat.register()
        manager.driver.host_manager.refresh()
        manager.driver.claims.prepare()
        if self.table.place == 0:
            preflight.warn_of_namesake(conf)
        if monitoring.is_enabled:
            self._live = LiveStatus(conf, manager, overview)
        ending.callback(heartbeat.stop)
        self._task = task = self._periodic_task(manager)
        ending.callback(task.stop)
        serve_introspection(conf, manager, self.table, transport, ending)
        self._server = self._new_server(transport, builds, manager)
        self._server.serve(ending)  # waits for the broker for as long as it takes
        self._start_tasks(manager, databases, ending)
        heartbeat.start()
        if conf.periodic_enable:
            task.start(random.uniform(0, conf.periodic_fuzzy_delay))

    def _notifications(self, ending: contextlib.ExitStack) -> Notifications:
        transport = get_notification_transport(self._conf)
        ending.callback(transport.cleanup)
        notifications = Notifications(transport, SERVICE, BINARY, self._conf.host)
        ending.callback(notifications.close)
        self._monitoring.watch(readings.read_notifications, notifications.outbox)
        return notifications

    def _store_records(
        self, manager: SchedulerManager, database: Database, ending: contextlib.ExitStack
    ) -> None:
        store = Store.from_conf(self._conf, database)
        if store is not None:
            ending.callback(store.close)
            manager.recorder.listeners.append(store.put)
        if (journal := Journal.from_conf(self._conf, manager.driver)) is not None:
            ending.callback(journal.close)
            self._monitoring.watch(readings.read_journal, journal)

    def _health(self) -> WorkerHealth:
        return WorkerHealth(
            self._in_flight,
            self._conf.metrics_endpoint.stuck_seconds,
            stage=lambda: self.stage,
            manager=lambda: self._manager,
            consumer=lambda: self._server,
            refused_reload=lambda: self._monitoring.is_reload_refused,
        )

    def _start_tasks(
        self, manager: SchedulerManager, databases: Databases, ending: contextlib.ExitStack
    ) -> None:
        hosts, options = manager.driver.host_manager, self._conf.scheduler
        interval_seconds = options.discover_hosts_in_cells_interval
        task = RepeatingTask("reads beside requests", hosts.read_beside, BESIDE_SECONDS)
        #: With the seconds until their first run.
        tasks: dict[RepeatingTask, float] = {task: BESIDE_SECONDS}
        if self._monitoring.is_enabled:
            period_seconds = max(0, options.periodic_task_interval)

            def look() -> None:
                look_when_idle(hosts, period_seconds)
                if self._live is not None:
                    self._live.note_taken_out()

            task = RepeatingTask("a look at the hosts", look, IDLE_LOOK_SECONDS)
            tasks[task] = IDLE_LOOK_SECONDS
        if interval_seconds >= 0 and self.table.place == 0 and not databases.main.is_read_only:
            run = functools.partial(discover_hosts, self._conf, databases, BINARY)
            tasks[RepeatingTask("discovery of hosts", run, interval_seconds)] = 0
        for task, delay_seconds in tasks.items():
            ending.callback(task.stop)
            task.start(delay_seconds)

    def _new_server(
        self, transport: RPCTransport, builds: DirectBuilds, manager: SchedulerManager
    ) -> Server:
        older = HavanaTasks(builds, manager), IcehouseTasks(builds, manager)
        endpoints = [SchedulerEndpoint(manager), *older, BaseAPI(SERVICE)]
        return Server(transport, self._topic, self._conf.host, endpoints, self._in_flight)

    def _periodic_task(self, manager: SchedulerManager) -> RepeatingTask:
        driver = manager.driver
        return RepeatingTask(
            f"{type(driver).__name__}.run_periodic_tasks",
            lambda: driver.run_periodic_tasks(get_admin_context()),
            self.conf_in_force.scheduler.periodic_task_interval,
            PERIODIC_JITTER,
        )

    def _is_listening(self) -> bool:
        return self._server is None or self._server.is_listening

    def _reloaded(self, outcome: Outcome) -> None:
        self._monitoring.reloaded(outcome)

    def _build(self, conf: cfg.ConfigOpts) -> PutInForce:
        parse_aliases(conf.pci.alias)
        manager, task = self._manager, self._task
        if manager is None or task is None:
            databases = Databases.from_conf(conf)
            try:
                build_manager(conf, databases)
            finally:
                databases.dispose()
            return lambda: None
        plugins.prepare(conf)
        take = manager.reconfigured(conf)

        def put_in_force() -> None:
            take()
            if conf.periodic_enable:
                task.respace(conf.scheduler.periodic_task_interval)

        return put_in_force


def main(argv: Sequence[str]) -> int:
    """Run the scheduler until it is stopped; returns the status to exit with."""
    set_defaults()
    source = startup.Source(argv, BINARY, cli_opts=CLI_OPTIONS)
    conf = startup.parse(source, description=DESCRIPTION)
    filter_scheduler.log_default_chain(conf)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    kind = Service
    try:
        if conf.shadow:
            shadow = importlib.import_module("scheduler.daemon.shadow")
            shadow.configure(conf)
            kind = shadow.ShadowService
        preflight.check(conf, build_manager)
        monitoring = Monitoring.from_conf(conf, BINARY)
    except errors.NovaException as error:
        return preflight.refuse(conf, BINARY, error)
    table = WorkerTable(number_of_workers(conf))
    service = kind(conf, Readiness(), table, monitoring)
    if not conf.shadow:
        service.reload_from(source)
    try:
        return launch(conf, service)
    finally:
        monitoring.close()


def number_of_workers(conf: cfg.ConfigOpts) -> int:
    """Number of worker processes; one per CPU unless configured otherwise, where that is safe."""
    claims = conf.scheduler.claims not in (None, loading.NONE)
    wanted = conf.scheduler.workers
    if wanted is None:
        wanted = 0 if claims and not is_in_process(conf) else 1
    count = wanted or os.cpu_count() or 1
    if count > 1 and not claims:
        LOG.warning(
            "%d workers and [scheduler] claims = none: two of them may promise the same host to "
            "two servers; the compute host refuses one of those then.",
            count,
        )
    return count
