"""A million inputs: ``python -m tests.fuzz`` prints what became of them, and fails for any harm.

Two targets at a time, each in a process of its own with a seed of its own, so that one run is like
the next; ``--share 0.01`` gives every target that part of its inputs, ``--most-seconds 3`` is for a
machine that is slower than what takes a second at most there.
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
from tests.fuzz import verdicts
from tests.fuzz.targets_listed import LISTED, Listed
from tests.reliability_page import PAGE, Row

NAME = "fuzz"
HEAD = ("target", "inputs", "faults", "over 1 s", "answered", "dropped", "refused")
AGREED = 4
"""The first cells of a row: in every run the same.  atheris goes other ways from run to run."""
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
    """The row of a target."""
    kinds = dict(told["kinds"])
    refused = {kind: kinds[kind] for kind in sorted(kinds) if kind not in NO_REFUSALS}
    return (
        name,
        f"{sum(kinds.values()):,}",
        f"{kinds.get('internal fault', 0) + kinds.get('crash', 0):,}",
        f"{told['over_limit']:,}",
        f"{sum(kinds.get(kind, 0) for kind in ACCEPTED):,}",
        f"{kinds.get('dropped', 0):,}",
        ", ".join(f"{kind} {count:,}" for kind, count in refused.items()) or "none",
    )


def main() -> int:
    """Run all targets; 1 if there was any harm."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of the inputs (default: 1)")
    parser.add_argument(
        "--most-seconds",
        type=float,
        default=verdicts.MOST_SECONDS,
        help="processor time that an input may take (default: 1)",
    )
    parser.add_argument("targets", nargs="*", help="names of targets (default: all)")
    asked = parser.parse_args()
    os.environ[verdicts.MOST_SECONDS_VARIABLE] = str(asked.most_seconds)
    listed = [each for each in LISTED if not asked.targets or each.name in asked.targets]
    began = time.monotonic()
    told = run_all(listed, asked.share)
    rows = [row(name, each) for name, each in told.items()]
    print(reliability_page.render(HEAD, rows))  # noqa: T201
    sentence = told_of(told, time.monotonic() - began)
    print(sentence)  # noqa: T201
    harm = [(name, *item) for name, each in told.items() for item in each["violations"].items()]
    for name, what, data in harm:
        print(f"{name}: {what}\n    {data}")  # noqa: T201
    is_whole = asked.share == 1.0 and len(listed) == len(LISTED)
    if not harm and is_whole and asked.most_seconds == verdicts.MOST_SECONDS:
        print(keep(sentence, rows))  # noqa: T201
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


def told_of(told: Mapping[str, Mapping[str, Any]], seconds: float) -> str:
    """How many inputs there were, and how slow the slowest was."""
    inputs = sum(sum(each["kinds"].values()) for each in told.values())
    slowest = max(each["slowest_ms"] for each in told.values())
    minutes = f"{seconds / 60:.0f} minutes"
    return f"{inputs:,} inputs in {minutes}, the slowest took {slowest:.0f} ms of processor time."


def keep(sentence: str, rows: Sequence[Row]) -> str:
    """Write the table of a whole run into docs/reliability.md; says if the one before agrees."""
    page = PAGE.read_text(encoding="utf-8")
    before = reliability_page.recorded(NAME, page)
    agreed = {tuple(each[:AGREED]) for each in before}
    differing = [each[0] for each in rows if before and tuple(each[:AGREED]) not in agreed]
    digest = reliability_page.digest(each[:AGREED] for each in rows)
    text = (
        f"{machine.sentence(machine.notes())} {sentence}\n\n"
        f"{reliability_page.render(HEAD, rows)}\n"
        f"Digest of the first four columns: `{digest}`.\n"
    )
    PAGE.write_text(reliability_page.written(NAME, page, text), encoding="utf-8")
    if differing:
        return f"Differs from the run before: {', '.join(differing)}."
    return "Agrees with the run before." if before else "There was no run before."


if __name__ == "__main__":
    sys.exit(main())
