"""A million inputs: ``python -m tests.fuzz`` prints what became of them, and fails for any harm.

Two targets at a time, each in a process of its own with a seed of its own, so that one run is like
the next; ``--share 0.01`` gives every target that part of its inputs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import machine
from tests import reliability_page
from tests.fuzz.targets_listed import LISTED, Listed
from tests.reliability_page import PAGE, Row

NAME = "fuzz"
HEAD = ("target", "inputs", "answered", "refused", "dropped", "faults", "over 1 s")
SEED = 20161006
AT_A_TIME = 2
ACCEPTED = ("accepted", "NoValidHost")
NO_REFUSALS = (*ACCEPTED, "dropped", "internal fault", "crash")


def run(name: str, module: str, inputs: int, folder: pathlib.Path) -> dict[str, Any]:
    """What one target tells when it has ended; how it ended if it does not tell."""
    out = folder / f"{name}.json"
    words = [sys.executable, "-m", module, name, str(inputs), str(SEED), str(out)]
    ended = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"}
    )
    if out.exists():
        told: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        findings = [f"    {what}" for what in told["violations"]]
        print("\n".join([f"{name} has ended.", *findings]), file=sys.stderr)  # noqa: T201
        return told
    tail = ended.stderr[-3000:]
    return {
        "kinds": {},
        "slowest_ms": 0.0,
        "over_limit": 0,
        "violations": {f"ended with {ended.returncode}": tail},
    }


def row(name: str, told: dict[str, Any]) -> Row:
    """The row of a target: alike in every run on the same code."""
    kinds = dict(told["kinds"])
    refused = {kind: kinds[kind] for kind in sorted(kinds) if kind not in NO_REFUSALS}
    return (
        name,
        f"{sum(kinds.values()):,}",
        f"{sum(kinds.get(kind, 0) for kind in ACCEPTED):,}",
        ", ".join(f"{kind} {count:,}" for kind, count in refused.items()) or "none",
        f"{kinds.get('dropped', 0):,}",
        f"{kinds.get('internal fault', 0) + kinds.get('crash', 0):,}",
        f"{told['over_limit']:,}",
    )


def main() -> int:
    """Run all targets; 1 if there was any harm."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of the inputs (default: 1)")
    parser.add_argument("targets", nargs="*", help="names of targets (default: all)")
    asked = parser.parse_args()
    listed = [each for each in LISTED if not asked.targets or each.name in asked.targets]
    began = time.monotonic()
    told = run_all(listed, asked.share)
    rows = [row(name, each) for name, each in told.items()]
    print(reliability_page.render(HEAD, rows))  # noqa: T201
    for text in summary(told, rows, time.monotonic() - began):
        print(text)  # noqa: T201
    harm = [(name, *item) for name, each in told.items() for item in each["violations"].items()]
    for name, what, data in harm:
        print(f"{name}: {what}\n    {data}")  # noqa: T201
    if not harm and asked.share == 1.0 and len(listed) == len(LISTED):
        keep(told, rows, time.monotonic() - began)
    return 1 if harm else 0


def run_all(listed: Sequence[Listed], share: float) -> dict[str, dict[str, Any]]:
    """What all targets tell, in their order."""
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
        running = {
            each.name: pool.submit(
                run, each.name, each.module, max(1, int(each.inputs * share)), pathlib.Path(folder)
            )
            for each in listed
        }
        return {name: each.result() for name, each in running.items()}


def summary(
    told: Mapping[str, Mapping[str, Any]], rows: Sequence[Row], seconds: float
) -> list[str]:
    """How many inputs there were, how slow the slowest was, whether the run before agrees."""
    inputs = sum(sum(each["kinds"].values()) for each in told.values())
    slowest = max(each["slowest_ms"] for each in told.values())
    before = reliability_page.recorded(NAME, PAGE.read_text(encoding="utf-8"))
    differing = [name for name, *_ in set(rows) - set(before)]
    return [
        f"{inputs:,} inputs in {seconds / 60:.0f} minutes, the slowest took {slowest:.0f} ms.",
        f"Differs from the run before: {', '.join(sorted(differing))}."
        if differing
        else "Agrees with the run before.",
    ]


def keep(told: Mapping[str, Mapping[str, Any]], rows: Sequence[Row], seconds: float) -> None:
    """Write the table of a whole run into docs/reliability.md."""
    first, _agrees = summary(told, rows, seconds)
    notes = machine.sentence(machine.notes())
    text = f"{notes} {first}\n\n{reliability_page.render(HEAD, rows)}\n"
    text += f"Digest of the table: `{reliability_page.digest(rows)}`.\n"
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(reliability_page.written(NAME, page, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
