"""A million inputs: ``python -m tests.fuzz`` prints what became of them, and fails for any harm.

Each target is a process with a seed of its own, so that one run is like the next.  ``--share 0.01``
gives each that part of its inputs; ``--most-seconds 3`` is for a slower machine than 1 s is for.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from tests.fuzz import verdicts
from tests.fuzz.targets import listed
from tests.world import results

HEAD = ("target", "inputs", "faults", "over 1 s", "slowest, ms", "answered", "dropped", "refused")
SEED = 20161006
ACCEPTED = ("accepted", "NoValidHost")
NO_REFUSALS = (*ACCEPTED, "dropped", "internal fault", "crash")


def run(name: str, inputs: int, folder: pathlib.Path) -> dict[str, Any]:
    """What one target tells when it has ended; how it ended if it does not tell."""
    out = folder / f"{name}.json"
    words = [sys.executable, "-m", "tests.fuzz.one", name, str(inputs), str(SEED), str(out)]
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


def row(name: str, told: dict[str, Any]) -> results.Row:
    kinds = dict(told["kinds"])
    refused = {kind: kinds[kind] for kind in sorted(kinds) if kind not in NO_REFUSALS}
    return (
        name,
        f"{sum(kinds.values()):,}",
        f"{kinds.get('internal fault', 0) + kinds.get('crash', 0):,}",
        f"{told['over_limit']:,}",
        f"{told['slowest_ms']:.0f}",
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
    with tempfile.TemporaryDirectory() as folder:
        told = {
            name: run(name, max(1, int(inputs * asked.share)), pathlib.Path(folder))
            for name, inputs in listed().items()
            if not asked.targets or name in asked.targets
        }
    results.publish(results.table(HEAD, [row(name, each) for name, each in told.items()]))
    harm = [(name, *item) for name, each in told.items() for item in each["violations"].items()]
    for name, what, data in harm:
        print(f"{name}: {what}\n    {data}")  # noqa: T201
    return 1 if harm or not told else 0


if __name__ == "__main__":
    sys.exit(main())
