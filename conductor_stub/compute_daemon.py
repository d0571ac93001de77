"""``nova-compute-stub``: one process that is many compute hosts.

Every host has an RPC server with a connection of its own: the RPC library lets a server listen
for one host only.
"""

import concurrent.futures
import contextlib
import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.rpc.server import RPCServer
from oslo_messaging.transport import RPCTransport

from conductor_stub.compute import profiles
from conductor_stub.compute.endpoints import endpoints_of
from conductor_stub.compute.host import BuildSettings, Clients
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.compute.profiles import HostPlan
from conductor_stub.compute.registration import TOPIC
from scheduler import concurrency, errors
from scheduler.conf import startup
from scheduler.daemon import preflight
from scheduler.daemon.periodic import RepeatingTask
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker import Worker, launch
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.rpc import transport
from scheduler.rpc.dispatcher import BaseAPI
from scheduler.rpc.server import Server
from scheduler.rpc.transport import get_transport

LOG = logging.getLogger(__name__)

SERVERS_AT_A_TIME = 64
"""The number of servers that connect, or disconnect, side by side."""
JITTER = 0.05
"""Keeps the reports of processes that were started together from coming in step."""


class ComputeService(Worker):
    """The hosts of *plans* on the bus; *luck* decides which of their builds fail."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        plans: list[HostPlan],
        settings: BuildSettings,
        luck: random.Random,
        readiness: Readiness,
        table: WorkerTable,
    ) -> None:
        super().__init__(conf, readiness, table, TOPIC)
        self._plans = plans
        self._settings = settings
        self._luck = luck

    def _start(self, ending: contextlib.ExitStack) -> None:
        """Register, serve, announce, report; at the end, running builds are finished first."""
        database = Database.from_conf(self._conf)
        ending.callback(database.dispose)
        transport = get_transport(self._conf)
        ending.callback(transport.cleanup)
        clients = Clients(transport, self._conf)
        hosts = ComputeHosts(
            self._conf, database, clients, self._plans, self._settings, luck=self._luck
        )
        hosts.register()
        sync_seconds = self._conf.scheduler_instance_sync_interval
        heartbeat = RepeatingTask("heartbeat", hosts.heartbeat, self._conf.report_interval)
        reports = [
            RepeatingTask(
                "update of resources", hosts.audit, self._conf.update_resources_interval, JITTER
            ),
            RepeatingTask("sync of instances", hosts.sync_instances, sync_seconds, JITTER),
        ]
        for task in (heartbeat, *reports):
            ending.callback(task.stop)
        serve(transport, hosts, ending)
        hosts.announce()
        if self._conf.report_interval > 0:
            heartbeat.start()
        for task in reports if self._conf.periodic_enable else ():
            task.start(random.uniform(0, self._conf.periodic_fuzzy_delay))
        LOG.info("Serving as %d compute hosts", len(hosts.hosts))


def check_clients(conf: cfg.ConfigOpts, _databases: Databases) -> None:
    """Make the clients, which do not connect; raises ConfigurationError."""
    bus = get_transport(conf)
    Clients(bus, conf)
    bus.cleanup()


def serve(transport: RPCTransport, hosts: ComputeHosts, ending: contextlib.ExitStack) -> None:
    """Take orders for all hosts until *ending* closes, which waits for those in hand."""
    servers = [
        Server(transport, TOPIC, name, [*endpoints_of(host), BaseAPI(TOPIC)])
        for name, host in hosts.hosts.items()
    ]
    started: list[RPCServer] = []

    def start(server: RPCServer) -> None:
        server.start()  # waits for the broker for as long as it takes
        started.append(server)

    ending.callback(_of_each, started, RPCServer.wait)
    ending.callback(_of_each, started, RPCServer.stop)
    _of_each(servers, start)


def _of_each(servers: list[RPCServer], act: Callable[[RPCServer], None]) -> None:
    if servers:
        with concurrent.futures.ThreadPoolExecutor(SERVERS_AT_A_TIME) as pool:
            list(pool.map(act, servers))


PROGRAM: Final = "nova-compute-stub"
DESCRIPTION: Final = "One process that is many compute hosts: they claim, build and report."
CLI_OPTIONS: Final[tuple[cfg.Opt, ...]] = (
    cfg.IntOpt(
        "hosts",
        min=1,
        help="Number of compute hosts to be. Default: as many as the profile makes by itself.",
    ),
    cfg.StrOpt(
        "profile",
        default=str(profiles.DEFAULT_FILE),
        help="YAML file that says what the hosts look like.",
    ),
    cfg.StrOpt(
        "host-prefix",
        default="compute",
        max_length=200,
        help="Beginning of the hosts' names: <prefix>-01, <prefix>-02, and so on.",
    ),
    cfg.FloatOpt("build-seconds", default=1.0, min=0, help="Seconds that a build takes."),
    cfg.FloatOpt(
        "fail-rate", default=0.0, min=0, max=1, help="Part of the builds that fail, 0.0 to 1.0."
    ),
    cfg.FloatOpt(
        "abort-rate",
        default=0.0,
        min=0,
        max=1,
        help="Part of the builds that fail in a way that would fail on any host, so that no other "
        "one is tried.",
    ),
    cfg.IntOpt(
        "seed",
        help="Seed of the choice of the builds that fail, in the order in which they get that far.",
    ),
)


def main(argv: Sequence[str]) -> int:
    """Be compute hosts until told to stop; returns the status to exit with."""
    transport.set_defaults()
    source = startup.Source(argv, PROGRAM, cli_opts=CLI_OPTIONS)
    conf = startup.parse(source, description=DESCRIPTION)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    try:
        preflight.check(conf, check_clients)
        profile = profiles.load(conf.profile)
        plans = profile.plan(conf.hosts or profile.natural_size, conf.host_prefix)
        profiles.merged_aggregates(plans)
    except errors.NovaException as error:
        return preflight.refuse(conf, PROGRAM, error)
    names = (each.name for each in dataclasses.fields(BuildSettings))
    settings = BuildSettings(**{name: conf[name] for name in names})
    luck, table = random.Random(conf.seed), WorkerTable()
    return launch(conf, ComputeService(conf, plans, settings, luck, Readiness(), table))
