"""Calls at a steady rate over a real RabbitMQ, while the hosts report or are silent."""

import subprocess
import sys
from collections.abc import Sequence

from benchmarks import leaks, requests, servers
from benchmarks.caller import Caller
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.subjects.bus import POOL, answering
from benchmarks.workload import Settings

WARM_UP_SECONDS = 2.0
#: Reports and calls go on for so long before the first call that counts: a server that nobody has
#: asked since the last round has to read first what has been reported in the meantime.
LEAD_SECONDS = 1.0


class Arrivals:
    """``per_second`` calls per second; with ``reports`` (seconds between two of a host) and
    ``heartbeats`` (likewise) the hosts report during the round.

    Latencies count from when the call was due, so that a server that cannot keep up shows.
    ``…_cpu`` is processor time of a part, in milliseconds per second.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._server = answering(settings, session)
        specs = [requests.plain(number, self._server.plan) for number in range(POOL)]
        self._caller = Caller(self._server.transport_url, specs)
        self._per_second = settings["per_second"]
        self._reports = settings.get("reports")
        self._heartbeats = settings.get("heartbeats")
        self._parts = {"scheduler": self.pids(), "broker": leaks.family(session.rabbitmq.pid)}
        if settings["database"] == "mariadb":
            self._parts["database"] = leaks.family(session.mariadb.pid)

    def warm_up(self) -> None:
        """A few calls."""
        self._caller.closed_loop(2, WARM_UP_SECONDS)

    def round(self, seconds: float) -> Sample:
        """Calls for *seconds*."""
        process = self._start_reports() if self._reports else None
        try:
            self._caller.open_loop(self._per_second, LEAD_SECONDS)
            before = self._cpu_seconds()
            latencies, elapsed = self._caller.open_loop(self._per_second, seconds)
            after = self._cpu_seconds()
        finally:
            more = self._end_reports(process) if process else {}
        for name, spent in after.items():
            more[f"{name}_cpu"] = 1000 * (spent - before[name]) / elapsed
        more["scheduler_mib"] = sum(leaks.memory_mib(pid)["rss_mib"] for pid in self.pids())
        return Sample(latencies, elapsed, len(latencies), more=more)

    def _cpu_seconds(self) -> dict[str, float]:
        return {name: leaks.cpu_seconds(pids) for name, pids in self._parts.items()}

    def _start_reports(self) -> subprocess.Popen[str]:
        url, hosts = str(self._server.database_url), str(self._server.plan.hosts)
        arguments = [url, hosts, str(self._reports), str(self._heartbeats)]
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.churn", *arguments],
            cwd=servers.ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    @staticmethod
    def _end_reports(process: subprocess.Popen[str]) -> dict[str, float]:
        """Written per second, by kind."""
        process.terminate()
        output, _errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"the reports ended with {process.returncode}")
        reports, beats, seconds = (float(word) for word in output.split())
        return {"reports": reports / seconds, "heartbeats": beats / seconds}

    def pids(self) -> Sequence[int]:
        """The server's processes."""
        return leaks.family(self._server.pid)

    def close(self) -> None:
        """Close the connection; the server ends with the session."""
        self._caller.close()
