"""``make demo``: start all parts in one process, ask for servers, show the outcome."""

import contextlib
import pathlib
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg
from oslo_log import log as logging
from rich.console import Console

from conductor_stub import servers
from conductor_stub.booting import BootRequest, Placement, create_servers, image_of
from conductor_stub.compute import profiles
from conductor_stub.compute.host import BuildSettings
from conductor_stub.compute_daemon import ComputeService
from conductor_stub.conductor_daemon import ConductorWorker
from conductor_stub.demo import scenario
from conductor_stub.demo.scenario import ASKS, GIANT, GROUP, REFUSED, UNLUCKY, Ask, Outcome
from conductor_stub.records import Order
from conductor_stub.rpcapi import ComputeTaskAPI
from scheduler import exit_codes, objects
from scheduler.conf import startup
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.service import Service
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db import compute_nodes, flavors, groups, migration
from scheduler.db.database import Database
from scheduler.rpc import transport
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

PROGRAM = "nova-scheduler-demo"
INTRODUCTION = "A scheduler, a conductor and hosts run here, on the in-process bus and SQLite."
NEXT = """
Try next:
  {bin}/nova-scheduler-manage --help
  {bin}/nova-scheduler-manage config show ram_allocation_ratio
  make demo-nova  # in a clone
"""
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
DEADLINE_SECONDS = 45.0
USER = "demo"
GIANT_SIZES = {"memory_mb": 262144, "vcpus": 2, "root_gb": 20, "ephemeral_gb": 0, "swap": 0}


class Misfortune(random.Random):
    """Makes exactly one build fail: the next one after :meth:`strike`."""

    _is_due = False

    def strike(self) -> None:
        """Let the next build fail."""
        self._is_due = True

    def random(self) -> float:
        """0.0 for the build that is to fail, else a number that no fail rate reaches."""
        is_due, self._is_due = self._is_due, False
        return 0.0 if is_due else 1.0


@dataclass(frozen=True)
class Demo:
    """One run of the scenario on everything that runs; *uuids* are those of its servers."""

    conf: cfg.ConfigOpts
    database: Database
    scheduler: Service
    misfortune: Misfortune
    conductor: ComputeTaskAPI
    uuids: dict[str, str] = field(default_factory=dict)

    def play(self, console: Console) -> None:
        """Ask for everything in order and wait until every server has ended one way or another."""
        with self.database.write() as connection:
            giant = objects.Flavor(name=GIANT, flavorid=GIANT, extra_specs={}, **GIANT_SIZES)
            flavors.create(connection, giant)
            groups.create(connection, GROUP, "anti-affinity", user_id=USER, project_id=USER)
        for ask in ASKS:
            if ask.after_all:
                self._wait_for_all()
            console.print(f"  boot {ask.count} × {ask.name} ({ask.flavor}): {ask.why}")
            self._ask(ask)
        self._wait_for_all()

    def _ask(self, ask: Ask) -> None:
        """Create the rows of the servers and call the conductor, as an API does."""
        if ask.name == UNLUCKY:
            self.misfortune.strike()
        with self.database.write() as connection:
            request = BootRequest(
                name=ask.name,
                count=ask.count,
                flavor=flavors.get(connection, "name", ask.flavor),
                image=image_of("cirros", {}),
                user_id=USER,
                project_id=USER,
                placement=Placement(zone=ask.zone),
                group=groups.get(connection, GROUP) if ask.in_group else None,
                hints={"same_host": self.uuids[ask.same_host_as]} if ask.same_host_as else {},
            )
            made = [each.instance for each in create_servers(connection, request)]
        self.uuids.update(zip(ask.names, [each.uuid for each in made], strict=True))
        context = RequestContext(user_id=USER, project_id=USER, roles=["member"], is_admin=False)
        order = Order.from_arguments(context, {"image": request.image})
        self.conductor.build_instances(order, made, request.filter_properties())

    def _wait_for_all(self) -> None:
        servers.watch(
            self.database,
            list(self.uuids.values()),
            lambda each: each.is_settled,
            DEADLINE_SECONDS,
        )

    def outcome(self) -> Outcome:
        """The state of the database and of the scheduler's records at the end."""
        with self.database.read() as connection:
            known = {each.uuid: each for each in servers.read(connection)}
            nodes = compute_nodes.list_all(connection)
        summed = dict.fromkeys((each.host for each in nodes), self.conf.reserved_host_memory_mb)
        for each in known.values():
            if each.instance.host:
                summed[each.instance.host] += each.instance.memory_mb
        records = {
            uuid: record
            for record in self.scheduler.driver.recorder.records
            for uuid in record.instance_uuids
        }
        return Outcome(
            servers={name: known[uuid] for name, uuid in self.uuids.items()},
            decisions={n: records[uuid] for n, uuid in self.uuids.items() if uuid in records},
            reported_mb={each.host: each.memory_mb_used for each in nodes},
            summed_mb=summed,
        )


@contextlib.contextmanager
def started(conf: cfg.ConfigOpts) -> Iterator[Demo]:
    """Start all parts on *conf*; they are stopped at the end."""
    with contextlib.ExitStack() as ending:
        database = Database.from_conf(conf)
        ending.callback(database.dispose)
        migration.sync(database)
        misfortune = Misfortune()
        profile = profiles.load(profiles.DEFAULT_FILE)
        plans = profile.plan(profile.natural_size, "compute")
        settings = BuildSettings(build_seconds=BUILD_SECONDS, fail_rate=0.5)
        scheduler = Service(conf, Readiness({}), WorkerTable(), Monitoring())
        workers = (
            ComputeService(conf, plans, settings, misfortune, Readiness({}), WorkerTable()),
            scheduler,
            ConductorWorker(conf, Readiness({}), WorkerTable()),
        )
        for worker in workers:
            worker.start()
            ending.callback(worker.stop)
        conductor = ComputeTaskAPI(transport.get_transport(conf))
        yield Demo(conf, database, scheduler, misfortune, conductor)


def main(argv: Sequence[str]) -> int:
    """Run the demo; 0 only if everything came out as it must."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="nova-scheduler-demo-") as name:
        configuration = pathlib.Path(name, "nova.conf")
        configuration.write_text(CONFIGURATION.format(folder=name), encoding="utf-8")
        transport.set_defaults()
        conf = startup.parse(startup.Source(["--config-file", str(configuration), *argv], PROGRAM))
        with started(conf) as demo:
            try:
                console.print(INTRODUCTION)
                demo.play(console)
                outcome = demo.outcome()
                console.print(scenario.servers(outcome))
                if REFUSED in outcome.decisions:
                    console.print(scenario.refusal(REFUSED, outcome.decisions[REFUSED]))
                is_right = scenario.verdict(outcome, console)
                console.print(NEXT.format(bin=pathlib.Path(sys.executable).parent), soft_wrap=True)
                return 0 if is_right else 1
            except Exception:
                LOG.exception("The demo broke off")
                console.print_exception()  # the log goes with the folder
                return exit_codes.FAILURE
