"""A process that reports for a fleet until it is told to end.

python -m benchmarks.reporting DATABASE-URL HOSTS REPORT-SECONDS BEAT-SECONDS
"""

from __future__ import annotations

import signal
import sys
import threading
import time

from benchmarks.churn import Reports
from benchmarks.fleet import FleetPlan
from scheduler.db.database import Database


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
