"""Ratios that tests hold at a small size: recorded once, and a collapse when much worse.

Absolute times say nothing on a machine that others use; a ratio of two subjects that take turns
does, and only if it is far off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks import runner, workload
from benchmarks.session import NO_SERVERS, Servers

PATH = Path(__file__).parent / "results" / "held.json"
#: So many times worse than recorded is a collapse.
COLLAPSE = 3.0

Ratios = dict[str, dict[str, float]]
"""By workload and row."""


def measure(names: Iterable[str], servers: Servers = NO_SERVERS) -> Ratios:
    """The held ratios of these workloads, measured on the *servers* given."""
    found: Ratios = {}
    for name in names:
        small = workload.load(name).at_small_size()
        if small is not None:
            rows = runner.run(small, servers=servers)["rows"]
            found[name] = {row["what"]: row["value"] for row in rows}
    return found


def record(ratios: Ratios) -> None:
    """Keep *ratios* as what later ones are held against."""
    kept = {**recorded(), **ratios}
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def recorded() -> Ratios:
    """What was kept; empty if nothing was."""
    ratios: Ratios = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    return ratios


def collapsed_twice(name: str, servers: Servers = NO_SERVERS) -> dict[str, str]:
    """What of workload *name* has collapsed now, and again in a second measurement.

    Somebody else may have had the processor during the first one.
    """
    found = collapsed(name, measure([name], servers)[name])
    return collapsed(name, measure([name], servers)[name]) if found else {}


def collapsed(name: str, ratios: dict[str, float]) -> dict[str, str]:
    """The *ratios* of workload *name* that have collapsed, each with both numbers.

    What still meets its target has not, however much better it was when it was recorded.
    """
    before = recorded()[name]
    rows = {row.what: row for row in workload.load(name).rows}
    return {
        what: f"{ratio:.3g}, {before[what]:.3g} when it was recorded"
        for what, ratio in ratios.items()
        if _has_collapsed(rows[what], ratio, before[what])
    }


def _has_collapsed(row: workload.Row, ratio: float, before: float) -> bool:
    if row.hold == "lower":
        return ratio / before >= COLLAPSE and (row.at_most is None or ratio > row.at_most)
    return before / ratio >= COLLAPSE and (row.at_least is None or ratio < row.at_least)
