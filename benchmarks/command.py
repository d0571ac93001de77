"""What the command line asks for."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import held, keeping, page, profiling, report, runner, workload

LOG = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Run the workloads; the status is 1 if one left a process behind."""
    if arguments.list:
        for name in workload.names():
            _print(f"{name}: {workload.load(name).about}")
        return 0
    if arguments.record:
        held.record(held.measure(arguments.workloads or workload.names()))
        return 0
    left = 0
    for name in arguments.workloads or ([] if arguments.page else workload.names()):
        result = _run(name, arguments)
        left += result["leaks"]["processes"]
        if arguments.keep and not (arguments.tiny or arguments.only or arguments.profile):
            keeping.merge(result, workload.names(), arguments.keep)
    if arguments.page:
        _write_page(arguments)
    return 1 if left else 0


def _run(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    wanted = workload.load(name)
    if arguments.tiny:
        wanted = wanted.at_tiny_size()
    with tempfile.TemporaryDirectory(prefix="nst-profiles-") as folder:
        profiler = profiling.Profiler(Path(folder)) if arguments.profile else None
        result = runner.run(wanted.only(arguments.only), profiler)
        _print(f"\n## {name}: {result['about']}\n\n{report.subjects(result)}")
        _print(f"{report.table([result])}\nleaks: {result['leaks']}, {result['took_seconds']} s")
        if profiler:
            _print(profiler.report())
    return result


def _write_page(arguments: argparse.Namespace) -> None:
    from benchmarks import plots  # noqa: PLC0415 - needs what only the extra installs

    results = keeping.load(arguments.keep or keeping.PATH)
    folder = page.PAGE.parent / page.PICTURES
    folder.mkdir(exist_ok=True)
    for name, result in results.items():
        for plot in workload.load(name).plots:
            path = plots.draw(plot, result, folder)
            LOG.info("%s: %s", name, path or f"{plot.name} lacks subjects")
    page.write(page.PAGE, results.values())


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
