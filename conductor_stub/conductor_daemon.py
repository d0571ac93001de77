"""``nova-conductor-stub``: the worker of ``serve``, and commands on servers."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.transport import RPCTransport

from conductor_stub.alternates import claims_from_conf
from conductor_stub.building import Builder
from conductor_stub.cli import boot, servers
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.failures import SERVICE, Failures
from conductor_stub.manager import BackportAPI, ComputeTaskManager
from conductor_stub.planning import Planner
from conductor_stub.rpcapi import TOPIC, SchedulerAPI
from scheduler import concurrency, errors
from scheduler.cli import command, program
from scheduler.conf import startup
from scheduler.daemon import preflight
from scheduler.daemon.periodic import ServiceHeartbeat
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker import Worker, launch
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db.database import Database
from scheduler.db.databases import API_OPTION, Databases
from scheduler.notifications import Notifications
from scheduler.rpc import transport
from scheduler.rpc.dispatcher import BaseAPI
from scheduler.rpc.server import Server
from scheduler.rpc.transport import get_notification_transport, get_transport

LOG = logging.getLogger(__name__)

BINARY: Final = "nova-conductor"


def _built(
    conf: cfg.ConfigOpts, database: Database, ending: contextlib.ExitStack
) -> tuple[RPCTransport, ComputeTaskManager]:
    """The bus and the manager with its parts, not connected; raises ConfigurationError."""
    transport = get_transport(conf)
    ending.callback(transport.cleanup)
    notification_transport = get_notification_transport(conf)
    ending.callback(notification_transport.cleanup)
    notifications = Notifications(notification_transport, SERVICE, BINARY, conf.host)
    ending.callback(notifications.close)
    builder = Builder(
        database=database,
        planner=Planner(conf, database, SchedulerAPI(transport, conf)),
        compute=ComputeAPI(transport, conf, database),
        failures=Failures(database, notifications, conf.host),
        claims=claims_from_conf(conf, database),
        default_zone=conf.default_availability_zone,
    )
    return transport, ComputeTaskManager(builder)


def check_manager(conf: cfg.ConfigOpts, databases: Databases) -> None:
    """Build the manager and let it go again; raises ConfigurationError."""
    if databases.api is not databases.main:
        reason = "the conductor stub works on the one database of [database]"
        raise errors.ConfigurationError(option=API_OPTION, reason=reason)
    with contextlib.ExitStack() as ending:
        _built(conf, databases.main, ending)


class ConductorWorker(Worker):
    """One worker of the conductor stub."""

    def __init__(self, conf: cfg.ConfigOpts, readiness: Readiness, table: WorkerTable) -> None:
        super().__init__(conf, readiness, table, TOPIC)

    def _start(self, ending: contextlib.ExitStack) -> None:
        database = Database.from_conf(self._conf)
        ending.callback(database.dispose)
        transport, manager = _built(self._conf, database, ending)
        heartbeat = ServiceHeartbeat(self._conf, database, BINARY, TOPIC)
        heartbeat.register()
        ending.callback(heartbeat.stop)
        endpoints = [manager, BackportAPI(), BaseAPI(TOPIC)]
        server = Server(transport, TOPIC, self._conf.host, endpoints)
        server.serve(ending)  # waits for the broker for as long as it takes
        heartbeat.start()


PROG: Final = "nova-conductor-stub"
SERVE: Final = "serve"
COMMANDS: Mapping[str, tuple[type[command.Base], str]] = {
    "boot": (boot.Boot, "boot servers"),
    "list": (servers.List, "list the servers"),
    "show": (servers.Show, "show one server"),
    "resize": (servers.Resize, "give a server another flavor"),
    "migrate": (servers.Migrate, "move a server to another host"),
    "delete": (servers.Delete, "delete servers"),
}
WORDS = {SERVE: "be the conductor", **{name: words for name, (_, words) in COMMANDS.items()}}


class Servers(program.Program):
    """The program."""

    NAME = PROG
    DESCRIPTION = "A small conductor, and servers without an API."
    WORDS = WORDS
    COMMANDS = {name: made for name, (made, _) in COMMANDS.items()}


def main(argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the status to exit with."""
    transport.set_defaults()
    option, argv = program.command_option(PROG, WORDS), program.forms_behind(argv, WORDS)
    # The daemon's log lines are wanted, those of commands are not; the first word tells.
    first_word = next((word for word in argv if word in WORDS), None)
    source = startup.Source(argv, PROG, cli_opts=[option], is_daemon=first_word == SERVE)
    conf = startup.parse(source, description=Servers.DESCRIPTION)
    if conf.command.name != SERVE or conf.command.words:
        return program.run(Servers, conf)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    try:
        preflight.check(conf, check_manager)
    except errors.NovaException as error:
        return preflight.refuse(conf, PROG, error)
    table = WorkerTable(conf.conductor.workers or os.cpu_count() or 1)
    return launch(conf, ConductorWorker(conf, Readiness(), table))
