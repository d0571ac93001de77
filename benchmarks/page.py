"""docs/performance.md: what lies between two markers is written anew from the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import machine, report

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PICTURES = Path("images")


def write(path: Path, results: Iterable[Mapping[str, Any]]) -> None:
    """Bring the page at *path* up to date: the target table, and a section per workload."""
    every = list(results)
    text = path.read_text(encoding="utf-8")
    text = _between(text, "results", _results(every))
    for result in every:
        text = _between(text, f"subjects {result['workload']}", _subjects(result))
    path.write_text(text, encoding="utf-8")


def _results(results: list[Mapping[str, Any]]) -> str:
    notes = machine.sentences([result["machine"] for result in results])
    lines = [*notes, "", report.table(results)]
    return "\n".join(lines)


def _subjects(result: Mapping[str, Any]) -> str:
    leaks = ", ".join(f"{name} {grown:+g}" for name, grown in result["leaks"].items())
    return (
        f"{result['about']}\n\n{report.subjects(result)}\n"
        f"{result['rounds']} rounds of {result['seconds']} s, {result['took_seconds']} s in all. "
        f"Peak memory {result['peak_rss_mib']:.0f} MiB. From first round to last: {leaks}.\n"
    )


def _between(text: str, name: str, content: str) -> str:
    """*text* with *content* between the markers *name*; unchanged where it has none."""
    begin, end = (f"<!-- {word} {name} -->" for word in ("begin", "end"))
    pattern = re.compile(f"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{content}{found[2]}", text)
