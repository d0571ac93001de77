"""What the command line asks for."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report, runner, workload


def run(arguments: argparse.Namespace) -> int:
    """Run the workloads; the status is 1 if one left a process behind."""
    if arguments.list:
        for name in workload.names():
            _print(f"{name}: {workload.load(name).about}")
        return 0
    left = 0
    for name in arguments.workloads or ([] if arguments.page else workload.names()):
        for wanted in _sizes(workload.load(name), arguments):
            result = _run(wanted, arguments)
            left += result["leaks"]["processes"]
            if arguments.keep and not (arguments.tiny or arguments.only or arguments.profile):
                report.merge(result, workload.names(), arguments.keep)
    if arguments.page:
        kept = report.load(arguments.keep or report.RESULTS)
        report.write_page(report.PAGE, kept.values())
    return 1 if left else 0


def _sizes(wanted: workload.Workload, arguments: argparse.Namespace) -> list[workload.Workload]:
    if arguments.tiny:
        return [wanted.at_tiny_size()]
    return [wanted.on(hosts) for hosts in arguments.nodes or ()] or [wanted]


def _run(wanted: workload.Workload, arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="nst-profiles-") as folder:
        profiler = runner.Profiler(Path(folder)) if arguments.profile else None
        result = runner.run(wanted.only(arguments.only), profiler)
        _print(f"\n## {wanted.name}: {result['about']}\n\n{report.subjects(result)}")
        _print(f"{report.table([result])}\nleaks: {result['leaks']}, {result['took_seconds']} s")
        if profiler:
            _print(profiler.report())
    return result


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
