"""Results as JSON and as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

HEADER = ("what", "target", "measured", "")
VERDICTS = {True: "met", False: "**missed**", None: ""}


def table(results: Iterable[Mapping[str, Any]]) -> str:
    """Every row of *results* as a line: what, target, measured, met or missed."""
    lines = [_line(HEADER), _line(["---"] * len(HEADER))]
    for result in results:
        lines += [_line(_cells(row)) for row in result["rows"]]
    return "\n".join(lines) + "\n"


def subjects(result: Mapping[str, Any]) -> str:
    """The subjects of one result: rate and latencies, medians over the rounds."""
    names = ("rate", "p50_ms", "p90_ms", "p99_ms")
    lines = [_line(["subject", "per second", "p50 ms", "p90 ms", "p99 ms"]), _line(["---"] * 5)]
    for subject, metrics in result["subjects"].items():
        lines.append(_line([subject, *(number(median(metrics[name])) for name in names)]))
    return "\n".join(lines) + "\n"


def median(values: Iterable[float]) -> float:
    """The middle one; of an even number the lower."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def number(value: float) -> str:
    """Three figures that matter, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _cells(row: Mapping[str, Any]) -> list[str]:
    unit = f" {row['unit']}" if row["unit"] else ""
    target = ""
    if row["at_least"] is not None:
        target = f"≥ {number(row['at_least'])}{unit}"
    elif row["at_most"] is not None:
        target = f"≤ {number(row['at_most'])}{unit}"
    return [row["what"], target, f"{number(row['value'])}{unit}", _verdict(row)]


def _verdict(row: Mapping[str, Any]) -> str:
    verdict = VERDICTS[row["met"]]
    if row["met"] is False:
        wanted = row["at_least"] if row["at_least"] is not None else row["at_most"]
        verdict += f" ({row['value'] / wanted:.2f} of the target)"
    return verdict


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
