"""The process around the hosts: one RPC server per host, and the timers of all of them.

Every server has a connection to the broker and a pool of workers of its own: the RPC library
lets a server listen for one host only.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
from collections.abc import Callable

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.rpc.server import RPCServer
from oslo_messaging.transport import RPCTransport

from conductor_stub.compute.builds import BuildSettings
from conductor_stub.compute.clients import Clients
from conductor_stub.compute.endpoints import endpoints_of
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.compute.profiles import HostPlan
from conductor_stub.compute.registration import TOPIC
from scheduler.db.database import Database
from scheduler.periodic import RepeatingTask
from scheduler.readiness import Readiness
from scheduler.rpc.server import BaseAPI, build_server
from scheduler.rpc.transport import get_transport
from scheduler.supervision import Supervision
from scheduler.worker import Worker

LOG = logging.getLogger(__name__)

SERVERS_AT_A_TIME = 64
"""How many servers connect, or disconnect, side by side."""
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
        supervision: Supervision,
    ) -> None:
        super().__init__(conf, readiness, supervision, TOPIC)
        self._plans = plans
        self._settings = settings
        self._luck = luck

    def _start(self, ending: contextlib.ExitStack) -> None:
        """Register, serve, announce, and keep reporting.

        At the end no more orders are taken, and builds that run are finished, before the rest.
        """
        database = Database.from_conf(self._conf)
        ending.callback(database.dispose)
        transport = get_transport(self._conf)
        ending.callback(transport.cleanup)
        hosts = ComputeHosts(
            self._conf,
            database,
            Clients.over(transport, self._conf),
            self._plans,
            self._settings,
            luck=self._luck,
        )
        hosts.register()
        heartbeat = RepeatingTask("heartbeat", hosts.heartbeat, self._conf.report_interval)
        ending.callback(heartbeat.stop)
        reports = self._reports(hosts)
        for task in reports:
            ending.callback(task.stop)
        serve(transport, hosts, ending)
        hosts.announce()
        if self._conf.report_interval > 0:
            heartbeat.start()
        for task in reports if self._conf.periodic_enable else ():
            task.start(random.uniform(0, self._conf.periodic_fuzzy_delay))
        LOG.info("Serving as %d compute hosts", len(hosts.names))

    def _reports(self, hosts: ComputeHosts) -> list[RepeatingTask]:
        """What every compute reports from time to time."""
        audit = ("update of resources", hosts.audit, self._conf.update_resources_interval)
        interval = self._conf.scheduler_instance_sync_interval
        sync = ("sync of instances", hosts.sync_instances, interval)
        return [RepeatingTask(*audit, JITTER), RepeatingTask(*sync, JITTER)]


def serve(transport: RPCTransport, hosts: ComputeHosts, ending: contextlib.ExitStack) -> None:
    """Take orders for all hosts until *ending* closes, which waits for those in hand."""
    servers = [
        build_server(transport, TOPIC, host, [*endpoints_of(hosts, host), BaseAPI(TOPIC)])
        for host in hosts.names
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
