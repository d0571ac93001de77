"""Spreading against stacking against best fit on the public Azure trace: a page with plots."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scheduler.replay import pages, report
from tests.world import machine

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/evidence/trace.md"
IMAGES = ROOT / "docs/images"
FLEET = "2000 × 64 cores/256 GiB, 3 zones"
CHAIN = (
    "RetryFilter,AvailabilityZoneFilter,CoreFilter,RamFilter,DiskFilter,ComputeFilter,"
    "ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,"
    "ServerGroupAffinityFilter"
)
COMMON = ("semantics=newton", "cpu_allocation_ratio=1", "ram_allocation_ratio=1")
STACKING = "ram_weight_multiplier=-1"
BEST_FIT = "ram_weight_multiplier=-1;io_ops_weight_multiplier=0"
NAMES = {"configured": "spreading", STACKING: "stacking", BEST_FIT: "best fit"}
HEAD = """# Packing on a month of a public cloud

Made by `make trace`. Newton's default chain and `CoreFilter`, no overcommit, on {fleet}.
Workload: {workload}.
Taken are days {begin:g} to {end:g}: {requests:,} requests.
The first {warm_up:g} hours do not count.

{machine}

* spreading: the defaults, free memory weighs most
* stacking: `ram_weight_multiplier = -1`; hosts that build servers are still avoided
* best fit: the same with `io_ops_weight_multiplier = 0`, so that the fullest host wins

"""
STYLE = (
    "<style>svg{background:#fff}text{font:11px sans-serif;fill:#5c6675}.grid{stroke:#dfe3ea}"
    "polyline{fill:none;stroke-width:1.6}.c0{stroke:#2463c4}.c1{stroke:#c2410c}.c2{stroke:#15803d}"
    "</style>"
)
SHOWN = ("Packing density, cores", "Empty hosts", "Stranded share, memory", "Fragment rate, memory")


def replayed(given: argparse.Namespace) -> dict[str, Any]:
    """The document of the replay that the command line asks for."""
    program = Path(sys.executable).with_name("nova-scheduler-manage")
    command = [str(program), "replay", str(given.trace)]
    command += ["--fleet", FLEET, "--against", STACKING, "--against", BEST_FIT, "-f", "json"]
    for each in (*COMMON, f"enabled_filters={CHAIN}"):
        command += ["--set", each]
    for option in ("from_day", "days", "warm_up"):
        command += [f"--{option.replace('_', '-')}", str(getattr(given, option))]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return json.loads(found.stdout)


def plots(results: Mapping[str, Any]) -> Iterator[str]:
    """Write the plots that are shown; the lines that show them."""
    for chart in report.charts(results):
        if (title := chart.title) in SHOWN:
            name = f"trace-{title.lower().replace(', ', '-').replace(' ', '-')}.svg"
            svg = pages.svg(chart).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
            svg = svg.replace(">", f">{STYLE}", 1)
            (IMAGES / name).write_text(svg + "\n", encoding="utf-8")
            yield f"\n{title} (blue: spreading, red: stacking, green: best fit):\n"
            yield f"\n![{title}](../images/{name})\n"


def main() -> int:
    """Replay, and write the page and its plots."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace", description=__doc__)
    parser.add_argument("trace", type=Path, help="folder of the packed trace")
    parser.add_argument("--from-day", type=float, default=0.0)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=24.0, metavar="HOURS")
    given, began = parser.parse_args(), machine.notes()
    document = replayed(given)
    results = {NAMES[name]: each for name, each in document["configurations"].items()}
    about = {
        "fleet": FLEET,
        "workload": document["workload"],
        "begin": given.from_day,
        "end": given.from_day + given.days,
        "requests": results["spreading"]["requests"],
        "warm_up": given.warm_up,
        "machine": machine.sentence(began),
    }
    lines = [HEAD.format(**about)]
    lines.append(f"| | {' | '.join(report.measure_heads(results))} |\n")
    lines.append(f"| --- |{' --: | --: |' * len(results)}\n")
    lines += [f"| {' | '.join(row)} |\n" for row in report.measure_rows(results)]
    for each in document["differences"]:
        count = f"{each['elsewhere']:,} of all {each['requests']:,}"
        other = NAMES[each["between"][1]]
        lines.append(
            f"\n{count} requests, the warm-up included, went elsewhere with {other} than with "
            "spreading.\n"
        )
    PAGE.write_text("".join([*lines, *plots(results)]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
