"""Calls over a real RabbitMQ, answered by a scheduler or by the server that answers a constant."""

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import fleet, leaks, requests, servers
from benchmarks.caller import Caller
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.workload import Settings

#: Different requests are rendered once and sent again and again.
POOL = 50
WARM_UP_SECONDS = 0.5
CONSTANT = "constant"
INSTALLED_AGO = datetime.timedelta(minutes=10)


@dataclass
class Answering:
    """A server on a virtual host of its own, and the fleet it knows."""

    pid: int
    transport_url: str
    database_url: str | None
    plan: fleet.FleetPlan


def answering(settings: Settings, session: Session) -> Answering:
    """The server for these settings; those that differ in the load only share one."""
    names = ("server", "driver", "backend", "database", "filters", "options", "fleet")
    kind = {name: settings.get(name) for name in names}
    return session.once(f"server {kind}", lambda ending: _started(settings, session, ending))


def _started(settings: Settings, session: Session, ending: contextlib.ExitStack) -> Answering:
    plan = fleet.FleetPlan(**settings["fleet"])
    transport_url = session.rabbitmq.url(session.rabbitmq.create_vhost())
    if settings["server"] == CONSTANT:
        server = servers.ConstantServer(settings, session.folder(), transport_url)
        ending.callback(server.close)
        return Answering(server.pid, transport_url, None, plan)
    # Installed a while ago: whatever was written within the last minute costs every look something,
    # and how much of that there is, is for the load to say.
    now = datetime.datetime.now(datetime.UTC) - INSTALLED_AGO
    database_url = session.database(settings["database"], plan, now)
    profile = session.profile_of(f"{settings['driver']} {settings.get('backend')}")
    deployment, daemon = servers.scheduler(
        settings, session.folder(), transport_url, database_url, profile
    )
    ending.callback(deployment.close)
    if profile is not None:
        ending.callback(daemon.terminate)
    return Answering(daemon.pid, transport_url, database_url, plan)


class Calls:
    """A closed loop of ``concurrency`` calls to ``server`` (``scheduler`` or ``constant``)."""

    def __init__(self, settings: Settings, session: Session) -> None:
        self._server = answering(settings, session)
        kind = requests.KINDS[settings.get("requests", "plain")]
        specs = [kind(number, self._server.plan) for number in range(POOL)]
        self._caller = Caller(self._server.transport_url, specs)
        self._concurrency = settings["concurrency"]

    def warm_up(self) -> None:
        """Until connections are made and caches filled."""
        self._caller.ask()
        self._caller.closed_loop(self._concurrency, WARM_UP_SECONDS)

    def round(self, seconds: float) -> Sample:
        """Calls for *seconds*."""
        before = leaks.cpu_seconds(self.pids())
        latencies, elapsed = self._caller.closed_loop(self._concurrency, seconds)
        cpu_seconds = leaks.cpu_seconds(self.pids()) - before
        more = {
            "reply_bytes": float(self._caller.reply_bytes),
            "cpu_ms": 1000 * cpu_seconds / len(latencies),
        }
        return Sample(latencies, elapsed, len(latencies), [_shape(self._caller.ask())], more)

    def pids(self) -> Sequence[int]:
        """The server's processes."""
        return leaks.family(self._server.pid)

    def close(self) -> None:
        """Close the connection; the server ends with the session."""
        self._caller.close()


def _shape(answer: list[list[Any]]) -> Any:
    """How many hosts were answered per server."""
    return tuple(len(hosts) for hosts in answer)
