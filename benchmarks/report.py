"""Results as Markdown tables, kept as JSON, and shown in docs/evidence/benchmarks.md."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.world import machine

#: One file with the newest result of each workload.
RESULTS = Path(__file__).parent / "results" / "results.json"
#: What lies between two markers there is written anew from the results.
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "benchmarks.md"
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


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Results by workload; empty if none were kept."""
    if not path.exists():
        return {}
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def merge(result: dict[str, Any], order: Sequence[str], path: Path = RESULTS) -> dict[str, Any]:
    """Keep *result* with those of other workloads, in *order*; returns all.

    A workload has a result for each size of fleets that was named.
    """
    kept = {**load(path), result["workload"]: result}
    kept = {each: kept[each] for name in order for each in kept if each.split()[0] == name}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return kept


def write_page(path: Path, results: Iterable[Mapping[str, Any]]) -> None:
    """Bring the page at *path* up to date: the target table, and a section per workload."""
    every = list(results)
    text = path.read_text(encoding="utf-8")
    text = _between(text, "results", _results(every))
    for result in every:
        text = _between(text, f"subjects {result['workload']}", _section(result))
    path.write_text(text, encoding="utf-8")


def _results(results: list[Mapping[str, Any]]) -> str:
    notes = machine.sentences([result["machine"] for result in results])
    lines = [*notes, "", table(results)]
    return "\n".join(lines)


def _section(result: Mapping[str, Any]) -> str:
    leaks = ", ".join(f"{name} {grown:+g}" for name, grown in result["leaks"].items())
    return (
        f"{result['about']}\n\n{subjects(result)}\n"
        f"{result['rounds']} rounds of {result['seconds']} s, {result['took_seconds']} s in all. "
        f"Peak memory {result['peak_rss_mib']:.0f} MiB. From first round to last: {leaks}.\n"
    )


def _between(text: str, name: str, content: str) -> str:
    """*text* with *content* between the markers *name*; unchanged where it has none."""
    begin, end = (f"<!-- {word} {name} -->" for word in ("begin", "end"))
    pattern = re.compile(f"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{content}{found[2]}", text)
