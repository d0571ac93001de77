"""The page of all metrics, from their catalogue."""

import textwrap
from pathlib import Path

from scheduler.metrics.catalogue import CATALOGUE, Metric

FILE = Path("docs/metrics.md")
WIDTH = 110
HEAD = """# Metrics

What `/metrics` shows ([observe](observe.md)). Values of several workers become one: a gauge says
how. Counters keep what workers had counted that were restarted. Labels come from closed sets.
The names of versions 0.1 and 0.2 go away with version 2.0.

"""


def text() -> str:
    """The page."""
    return HEAD + "\n".join(map(_item, CATALOGUE)) + "\n"


def _item(metric: Metric) -> str:
    kind, *of = ("gauge", metric.kind.value) if metric.kind.is_gauge else (metric.kind.value,)
    labels = f" by {', '.join(f'`{label}`' for label in metric.labels)}" if metric.labels else ""
    former = f" Also `{metric.former}`, as in version 0.2." if metric.former else ""
    item = f"* `{metric.name}` ({', '.join([kind + labels, *of])}). {metric.help}{former}"
    return textwrap.fill(item, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
