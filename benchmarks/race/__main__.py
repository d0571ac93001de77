"""Run the race, print its table; the status is 1 if a promise was broken."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import signal
import sys
from collections.abc import Sequence

from benchmarks.race.plan import Plan
from scheduler import concurrency


def main(argv: Sequence[str] | None = None) -> int:
    """Run; see ``--help``."""
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    from benchmarks.race import run, table  # noqa: PLC0415

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    # A run that is told to end takes its servers along.
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(128 + signal.SIGTERM))
    plan = _plan(argv)
    outcome = run.race(plan)
    sys.stdout.write(table.render(plan, outcome) + "\n")
    return 1 if table.broken(plan, outcome) else 0


def _plan(argv: Sequence[str] | None) -> Plan:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for each in dataclasses.fields(Plan):
        name = "--" + each.name.replace("_", "-")
        kind = type(each.default)
        choices = each.metadata.get("choices")
        parser.add_argument(
            name, type=kind, default=each.default, choices=choices, help=each.metadata["help"]
        )
    return Plan(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
