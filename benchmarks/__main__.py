"""The command line: run workloads, print their tables, keep their results."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scheduler import concurrency

RESULTS = Path(__file__).parent / "results" / "results.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the status is 1 if something was left behind."""
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    from benchmarks import profiling, report, runner, workload  # noqa: PLC0415

    arguments = _arguments(argv, workload.names())
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    results = []
    for name in arguments.workloads or workload.names():
        wanted = workload.load(name)
        if arguments.tiny:
            wanted = wanted.at_tiny_size()
        profiler = profiling.Profiler() if arguments.profile else None
        result = runner.run(wanted.only(arguments.only), profiler)
        results.append(result)
        _print(f"\n## {name}: {result['about']}\n\n{report.subjects(result)}")
        _print(f"{report.table([result])}\nleaks: {result['leaks']}, {result['took_seconds']} s")
        if profiler:
            _print(profiler.report())
    return 0


def _arguments(argv: Sequence[str] | None, names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"all, or some of: {', '.join(names)}"
    )
    parser.add_argument("--only", nargs="+", metavar="SUBJECT", help="only these subjects")
    parser.add_argument("--tiny", action="store_true", help="one short round at the size of a test")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    return parser.parse_args(argv)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
