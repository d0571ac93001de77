"""The page for operators lists what there is."""

from __future__ import annotations

from pathlib import Path

from scheduler.metrics.catalogue import CATALOGUE, Metric

PAGE = Path(__file__).parents[3] / "docs" / "observe.md"


def line(metric: Metric) -> str:
    kind = f"gauge: {metric.kind.value}" if metric.kind.is_gauge else metric.kind.value
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {kind} | {labels} | {metric.help} |"


def test_the_table_of_metrics() -> None:
    listed = [
        each for each in PAGE.read_text(encoding="utf-8").splitlines() if "`nova_sched" in each
    ]
    assert [each for each in listed if each.startswith("| `nova_scheduler_")] == list(
        map(line, CATALOGUE)
    )
