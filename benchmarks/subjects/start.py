"""From the start of the daemon to its first answer, and the memory it has then."""

import datetime
import time
from collections.abc import Sequence

from benchmarks import fleet, leaks, requests, servers
from benchmarks.caller import Caller
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.workload import Settings


class Starts:
    """Each round starts a scheduler on the fleet's database, asks it once, and ends it.

    ``rss_mib`` is its resident memory after that answer, ``peak_mib`` the highest until then.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._settings = settings
        self._session = session
        self._plan = fleet.FleetPlan(**settings["fleet"])
        now = datetime.datetime.now(datetime.UTC)
        self._database_url = session.database(settings["database"], self._plan, now)
        self._vhost = session.rabbitmq.create_vhost()

    def warm_up(self) -> None:
        """Nothing: a start is a start.  The files it reads are in the system's cache by then."""

    def round(self, seconds: float) -> Sample:
        """One start, however long it takes."""
        del seconds
        transport_url = self._session.rabbitmq.url(self._vhost)
        began = time.perf_counter()
        deployment, daemon = servers.scheduler(
            self._settings, self._session.folder(), transport_url, self._database_url
        )
        try:
            caller = Caller(transport_url, [requests.plain(0, self._plan)])
            answer = caller.ask()
            elapsed = time.perf_counter() - began
            caller.close()
            memory = leaks.memory_mib(leaks.family(daemon.pid)[-1])
            daemon.terminate()
        finally:
            deployment.close()
        return Sample([elapsed], elapsed, 1, [len(answer)], {**memory, "hosts": self._plan.hosts})

    def pids(self) -> Sequence[int]:
        """None between the rounds."""
        return ()

    def close(self) -> None:
        """The servers end with the session."""
