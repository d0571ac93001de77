"""Compute hosts that report: the writes of a fleet, spread evenly over time.

``python -m benchmarks.churn DATABASE-URL HOSTS REPORT-SECONDS BEAT-SECONDS`` reports until it is
told to end.
"""

import datetime
import itertools
import random
import signal
import sys
import threading
import time

from benchmarks import install
from benchmarks.fleet import FleetPlan
from scheduler.db import tables
from scheduler.db.database import Database

STEP_SECONDS = 0.1


class Reports:
    """Every host changes its compute node each *report_seconds*, its service each *beat_seconds*.

    ``step`` writes what is due, at most every tenth of a second.
    """

    def __init__(
        self, database: Database, plan: FleetPlan, report_seconds: float, beat_seconds: float
    ) -> None:
        self._database = database
        self._plan = plan
        self._nodes_per_second = plan.hosts / report_seconds
        self._beats_per_second = plan.hosts / beat_seconds
        self._ids = [itertools.cycle(range(1, plan.hosts + 1)) for _table in range(2)]
        self._rng = random.Random(2)
        self._last = time.monotonic()
        self.reports = 0
        self.beats = 0

    def step(self) -> None:
        """Write what has become due since the last step."""
        elapsed = time.monotonic() - self._last
        if elapsed < STEP_SECONDS:
            time.sleep(STEP_SECONDS - elapsed)
            elapsed = time.monotonic() - self._last
        self._last = time.monotonic()
        now = datetime.datetime.now(datetime.UTC)
        nodes = list(itertools.islice(self._ids[0], round(elapsed * self._nodes_per_second)))
        services = list(itertools.islice(self._ids[1], round(elapsed * self._beats_per_second)))
        with self._database.write() as connection:
            for node in nodes:  # each reports numbers of its own
                install.report(connection, [node], now, self._rng.randrange(8192, 32768))
            table = tables.services
            stamp = now.replace(tzinfo=None, microsecond=0)
            for some in install.parts(services):
                connection.execute(
                    table.update()
                    .where(table.c.id.in_(some))
                    .values(updated_at=stamp, last_seen_up=stamp, report_count=1)
                )
        self.reports += len(nodes)
        self.beats += len(services)


def main(url: str, hosts: str, report_seconds: str, beat_seconds: str) -> int:
    """Report; says when it begins, and at the end how often in how many seconds."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_arguments: ending.set())
    database = Database(url)
    plan = FleetPlan(hosts=int(hosts))
    reports = Reports(database, plan, float(report_seconds), float(beat_seconds))
    reports.step()
    sys.stdout.write("reporting\n")
    sys.stdout.flush()
    began = time.monotonic()
    while not ending.is_set():
        reports.step()
    elapsed = time.monotonic() - began
    database.dispose()
    sys.stdout.write(f"{reports.reports} {reports.beats} {elapsed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
