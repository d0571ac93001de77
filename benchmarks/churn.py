"""Compute hosts that report: the writes of a fleet, spread evenly over time."""

from __future__ import annotations

import datetime
import itertools
import random
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
