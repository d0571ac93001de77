"""Run workloads in turn: print their tables, keep their results, write the page anew."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from scheduler import concurrency

LOG = logging.getLogger("benchmarks")
RESULTS = Path(__file__).parent / "results" / "results.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the status is 1 if a workload left a process behind."""
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    from benchmarks import command  # noqa: PLC0415

    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    LOG.setLevel(logging.INFO)
    # A run that is told to end takes its servers along.
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(128 + signal.SIGTERM))
    return command.run(_arguments(argv))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="names or files; without any: all")
    add("--list", action="store_true", help="say which workloads there are")
    add("--only", nargs="+", metavar="SUBJECT", help="only these subjects; nothing is kept then")
    add("--nodes", nargs="+", type=int, metavar="N", help="fleets of these sizes, one by one")
    add("--tiny", action="store_true", help="two short rounds at the size of a test; not kept")
    add("--profile", action="store_true", help="print where the time goes; nothing is kept then")
    add("--keep", type=Path, metavar="FILE", help=f"the results to merge into, e.g. {RESULTS.name}")
    add("--page", action="store_true", help="write docs/evidence/benchmarks.md anew")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
