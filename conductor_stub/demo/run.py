"""``make demo``: start all parts in one process, ask for servers, show the outcome."""

from __future__ import annotations

import contextlib
import pathlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from oslo_config import cfg
from oslo_log import log as logging
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from conductor_stub import servers
from conductor_stub.booting import BootRequest, Placement, create_servers, image_of
from conductor_stub.compute import profiles
from conductor_stub.compute.builds import BuildSettings
from conductor_stub.compute_daemon import ComputeService
from conductor_stub.conductor_daemon import ConductorWorker
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.demo import scenario
from conductor_stub.demo.scenario import (
    ACTIVE,
    ASKS,
    ERROR,
    GIANT,
    GIANT_MB,
    GROUP,
    REFUSED,
    UNLUCKY,
    Ask,
    Outcome,
)
from conductor_stub.records import Order
from scheduler import exit_codes, objects
from scheduler.conf import startup
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.service import Service
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db import aggregates, compute_nodes, flavors, groups, instances, migration
from scheduler.db.database import Database
from scheduler.engine.record import DecisionRecord
from scheduler.rpc import transport
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

CONFIGURATION = """\
[DEFAULT]
transport_url = fake://
state_path = {folder}
host = demo
log_file = {folder}/demo.log
report_interval = 2
[filter_scheduler]
enabled_filters = RetryFilter,AvailabilityZoneFilter,RamFilter,DiskFilter,ComputeFilter,\
ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,\
ServerGroupAffinityFilter,SameHostFilter
"""
BUILD_SECONDS = 0.4


class Misfortune(random.Random):
    """Makes exactly one build fail: the next one after :meth:`strike`."""

    def __init__(self) -> None:
        super().__init__()
        self._is_due = False

    def strike(self) -> None:
        """Let the next build fail."""
        self._is_due = True

    def random(self) -> float:
        """0.0 for the build that is to fail, else a number that no fail rate reaches."""
        is_due, self._is_due = self._is_due, False
        return 0.0 if is_due else 1.0


@dataclass(frozen=True)
class Stage:
    """Everything that runs, and what the demo looks at."""

    conf: cfg.ConfigOpts
    database: Database
    scheduler: Service
    misfortune: Misfortune


def write_configuration(folder: pathlib.Path) -> pathlib.Path:
    """The demo's nova.conf, in *folder*."""
    path = folder / "nova.conf"
    path.write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")
    return path


@contextlib.contextmanager
def started(conf: cfg.ConfigOpts) -> Iterator[Stage]:
    """Start all parts on *conf*; they are stopped at the end."""
    with contextlib.ExitStack() as ending:
        database = Database.from_conf(conf)
        ending.callback(database.dispose)
        migration.sync(database)
        misfortune = Misfortune()
        profile = profiles.load(str(profiles.DEFAULT_FILE))
        plans = profile.plan(profile.natural_size, "compute")
        settings = BuildSettings(
            build_seconds=BUILD_SECONDS,
            fail_rate=0.5,
            max_concurrent_builds=conf.max_concurrent_builds,
        )
        scheduler = Service(conf, Readiness({}), WorkerTable(), Monitoring())
        workers = (
            ComputeService(conf, plans, settings, misfortune, Readiness({}), WorkerTable()),
            scheduler,
            ConductorWorker(conf, Readiness({}), WorkerTable()),
        )
        for worker in workers:
            worker.start()
            ending.callback(worker.stop)
        yield Stage(conf, database, scheduler, misfortune)


PROGRAM = "nova-scheduler-demo"
DEADLINE_SECONDS = 45.0
COLUMNS = (
    *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
)
POLL_SECONDS = 0.05


class Demo:
    """One run of the scenario on a *stage*."""

    def __init__(self, on: Stage, console: Console) -> None:
        self.stage = on
        self.console = console
        self.conductor = ComputeTaskAPI(transport.get_transport(on.conf))
        self.context = RequestContext(
            user_id="demo", project_id="demo", roles=["member"], is_admin=False
        )
        self.uuids: dict[str, str] = {}
        self.asked_at: dict[str, float] = {}
        self.ended_at: dict[str, float] = {}

    def prepare(self) -> None:
        """The flavor and the group that the scenario needs."""
        with self.stage.database.write() as connection:
            sizes = {"memory_mb": GIANT_MB, "vcpus": 2, "root_gb": 20, "ephemeral_gb": 0, "swap": 0}
            giant = objects.Flavor(name=GIANT, flavorid=GIANT, extra_specs={}, **sizes)
            flavors.create(connection, giant)
            groups.create(connection, GROUP, "anti-affinity", user_id="demo", project_id="demo")

    def ask(self, ask: Ask) -> None:
        """Create the rows of the servers and call the conductor, as an API does."""
        if ask.name == UNLUCKY:
            self.stage.misfortune.strike()
        with self.stage.database.write() as connection:
            request = self._request(connection, ask)
            made = [each.instance for each in create_servers(connection, request)]
        now = time.monotonic()
        for name, server in zip(ask.names, made, strict=True):
            self.uuids[name] = server.uuid
            self.asked_at[server.uuid] = now
        order = Order(
            context=self.context,
            image=request.image,
            admin_password="",  # nosec B106
            injected_files=[],
            requested_networks=None,
            security_groups=["default"],
        )
        self.conductor.build_instances(order, made, request.filter_properties())

    def _request(self, connection: Connection, ask: Ask) -> BootRequest:
        hints: dict[str, str | list[str]] = {}
        if ask.same_host_as:
            hints["same_host"] = self.uuids[ask.same_host_as]
        return BootRequest(
            name=ask.name,
            count=ask.count,
            flavor=flavors.get(connection, "name", ask.flavor),
            image=image_of("cirros", {}),
            user_id="demo",
            project_id="demo",
            placement=Placement(zone=ask.zone),
            group=groups.get(connection, GROUP) if ask.in_group else None,
            hints=hints,
        )

    def play(self) -> None:
        """Ask for everything in order and wait until every server has ended one way or another."""
        with Progress(*COLUMNS, console=self.console) as progress:
            task = progress.add_task("servers ended", total=sum(ask.count for ask in ASKS))

            def show() -> None:
                progress.update(task, completed=len(self.ended_at))

            for ask in ASKS:
                if ask.after_all:
                    self._wait_for_all(show)
                progress.console.print(f"  boot {ask.count} × {ask.name} ({ask.flavor}): {ask.why}")
                self.ask(ask)
            self._wait_for_all(show)

    def _wait_for_all(self, show: Callable[[], None]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(self.ended_at) < len(self.uuids) and time.monotonic() < deadline:
            with self.stage.database.read() as connection:
                states = {each.uuid: each.vm_state for each in instances.list_all(connection)}
            for uuid in self.uuids.values():
                if states.get(uuid) in (ACTIVE, ERROR):
                    self.ended_at.setdefault(uuid, time.monotonic())
            show()
            time.sleep(POLL_SECONDS)

    def outcome(self) -> Outcome:
        """The database's state at the end, with the times measured here."""
        with self.stage.database.read() as connection:
            known = {each.uuid: each for each in servers.read(connection)}
            zones = {
                host: each.availability_zone
                for each in aggregates.list_all(connection)
                if each.availability_zone
                for host in each.hosts
            }
        memory = self.memory()
        summed = dict.fromkeys(memory, self.stage.conf.reserved_host_memory_mb)
        for each in known.values():
            if each.instance.host:
                summed[each.instance.host] += each.instance.memory_mb
        now = time.monotonic()
        records = {name: self.decision_on(uuid) for name, uuid in self.uuids.items()}
        return Outcome(
            servers={name: known[uuid] for name, uuid in self.uuids.items()},
            zone_of_host=zones,
            decision_ms={name: each.elapsed_ms for name, each in records.items() if each},
            total_ms={
                name: (self.ended_at.get(uuid, now) - self.asked_at[uuid]) * 1000
                for name, uuid in self.uuids.items()
            },
            reported_mb={host: used for host, (used, _total) in memory.items()},
            summed_mb=summed,
        )

    def decision_on(self, uuid: str) -> DecisionRecord | None:
        """The scheduler's record of the decision on a server."""
        records = self.stage.scheduler.driver.records
        return next((each for each in records if uuid in each.instance_uuids), None)

    def memory(self) -> dict[str, tuple[int, int]]:
        """Per host the memory that is used and all there is, in MB, as its row says."""
        with self.stage.database.read() as connection:
            nodes = compute_nodes.list_all(connection)
        return {each.host: (each.memory_mb_used, each.memory_mb) for each in nodes}


def main(argv: Sequence[str]) -> int:
    """Run the demo; 0 only if everything came out as it must."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="nova-scheduler-demo-") as name:
        configuration = write_configuration(pathlib.Path(name))
        transport.set_defaults()
        conf = startup.parse(["--config-file", str(configuration), *argv], PROGRAM)
        with started(conf) as on:
            try:
                return _show(Demo(on, console), console)
            except Exception:
                LOG.exception("The demo broke off")
                console.print_exception()  # the log goes with the folder
                return exit_codes.FAILURE


def _show(demo: Demo, console: Console) -> int:
    demo.prepare()
    before = demo.memory()
    console.print(
        f"A scheduler, a conductor and {len(before)} compute hosts run in this process, "
        "on the in-process bus and SQLite."
    )
    demo.play()
    outcome = demo.outcome()
    after = demo.memory()
    console.print(scenario.servers(outcome))
    console.print(
        scenario.bars(
            {host: total for host, (_used, total) in after.items()},
            {host: used for host, (used, _total) in before.items()},
            {host: used for host, (used, _total) in after.items()},
        )
    )
    refused = demo.decision_on(outcome.servers[REFUSED].uuid)
    if refused is not None:
        console.print(scenario.refusal(REFUSED, refused))
    return 0 if scenario.verdict(outcome, console) else 1
