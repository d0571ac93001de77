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
from typing import Any

from tests.fuzz.targets_listed import LISTED

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
        return told
    tail = ended.stderr[-3000:]
    return {"kinds": {}, "slowest_ms": 0.0, "violations": {f"ended with {ended.returncode}": tail}}


def line(name: str, told: dict[str, Any]) -> str:
    """The row of a target."""
    kinds = dict(told["kinds"])
    refused = {kind: kinds[kind] for kind in sorted(kinds) if kind not in NO_REFUSALS}
    cells = [
        name,
        f"{sum(kinds.values()):,}",
        f"{sum(kinds.get(kind, 0) for kind in ACCEPTED):,}",
        ", ".join(f"{kind} {count:,}" for kind, count in refused.items()) or "none",
        f"{kinds.get('dropped', 0):,}",
        f"{kinds.get('internal fault', 0) + kinds.get('crash', 0):,}",
        f"{told['slowest_ms']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Run all targets; 1 if there was any harm."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="part of the inputs (default: 1)")
    share = parser.parse_args().share
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
        running = {
            each.name: pool.submit(
                run, each.name, each.module, max(1, int(each.inputs * share)), pathlib.Path(folder)
            )
            for each in LISTED
        }
        told = {name: each.result() for name, each in running.items()}
    print("| target | inputs | answered | refused | dropped | faults | slowest, ms |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for name, each in told.items():
        print(line(name, each))  # noqa: T201
    print(f"{sum(sum(each['kinds'].values()) for each in told.values()):,} inputs")  # noqa: T201
    harm = [(name, *item) for name, each in told.items() for item in each["violations"].items()]
    for name, what, data in harm:
        print(f"{name}: {what}\n    {data}")  # noqa: T201
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main())
