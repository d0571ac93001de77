"""The values of metrics at one moment, of one worker or of several together, for Prometheus.

Each worker has a file with its latest values, in the folder that the workers of a daemon share.
What it had counted stays there when it dies.

The library's own way, files mapped into memory, is none for a daemon: where the disk is full, a
new value ends the process by SIGBUS, and each decision takes five times as long to count.
"""

import bisect
import itertools
import json
import operator
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from scheduler.metrics.catalogue import BY_NAME, CATALOGUE, SECONDS_BUCKETS, Kind, Metric

Key = tuple[str, tuple[str, ...]]
"""The name of a metric, and the values of its labels in the catalogue's order."""

FRESH_SECONDS: Final = 10.0
"""A worker that has written nothing for longer is not counted as alive."""
_BOUNDS: Final = [floatToGoString(bound) for bound in (*SECONDS_BUCKETS, float("inf"))]
_COMBINED: Final[Mapping[Kind, Callable[[Any, Any], Any]]] = {
    Kind.COUNTER: operator.add,
    Kind.HISTOGRAM: lambda known, value: list(map(operator.add, known, value)),
    Kind.SUM: operator.add,
    Kind.MAX: max,
    Kind.MIN: min,
}


@dataclass(slots=True, eq=False)  # the library keeps it as a key
class Samples(Collector):
    """Values by metric name and labels; ``read_at`` is when the worker has read the hosts last.

    The value of a histogram is a list: the count of each bucket, and the sum of what it counts.
    """

    values: dict[Key, Any] = field(default_factory=dict)
    read_at: float = float("-inf")

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        self.values[metric.name, labels] = value

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        key = metric.name, labels
        self.values[key] = self.values.get(key, 0) + value

    def histogram(self, metric: Metric, *labels: str) -> list[float]:
        return self.values.setdefault((metric.name, labels), [0] * (len(_BOUNDS) + 1))

    def observe(self, metric: Metric, seconds: float, *labels: str) -> None:
        counts = self.histogram(metric, *labels)
        counts[bisect.bisect_left(SECONDS_BUCKETS, seconds)] += 1
        counts[-1] += seconds

    def take(self, other: Self, *, is_alive: bool) -> None:
        """Add the values of another worker; a dead one's gauges say nothing any more."""
        is_newer = other.read_at > self.read_at
        for key, value in other.values.items():
            metric = BY_NAME.get(key[0])
            if metric is None or (metric.kind.is_gauge and not is_alive):
                continue
            known = self.values.get(key)
            if known is not None and metric.kind is not Kind.NEWEST:
                self.values[key] = _COMBINED[metric.kind](known, value)
            elif known is None or is_newer:
                self.values[key] = value
        if is_alive and is_newer:
            self.read_at = other.read_at

    def to_plain(self) -> dict[str, Any]:
        return {
            "values": [[name, labels, value] for (name, labels), value in self.values.items()],
            "read_at": self.read_at,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        values = {(name, tuple(labels)): value for name, labels, value in plain["values"]}
        return cls(values, plain["read_at"])

    def collect(self) -> Iterable[Family]:
        """Every metric that has values, in the catalogue's order; called by the library."""
        values = sorted(self.values.items(), key=lambda item: item[0])
        for metric in CATALOGUE:
            own = [(labels, value) for (name, labels), value in values if name == metric.name]
            for name in (metric.name, metric.former) if own else ():
                if name:
                    yield _family(replace(metric, name=name), own)


def render(samples: Samples, accept: str) -> tuple[bytes, str]:
    """*samples* in the format that the header *accept* asks for, and its content type."""
    registry = CollectorRegistry()
    registry.register(samples)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def _family(metric: Metric, values: Iterable[tuple[tuple[str, ...], Any]]) -> Family:
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, (*counts, total) in values:
            buckets = list(zip(_BOUNDS, itertools.accumulate(counts), strict=True))
            histogram.add_metric(labels, buckets, total)
        return histogram
    kind = GaugeMetricFamily if metric.kind.is_gauge else CounterMetricFamily
    simple = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in values:
        simple.add_metric(labels, value)
    return simple


class Snapshots:
    """The files in *folder*, each named after the *place* of a worker; *clock* never goes back.

    One without a place is named after its process.  A worker that replaces one that died takes its
    place, and goes on from what that had counted.
    """

    def __init__(
        self, folder: pathlib.Path, place: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        name = f"process-{os.getpid()}" if place is None else place
        self._path = folder / f"metrics-{name}.json"
        self._clock = clock
        self._before = Samples()
        if self._path.exists():
            left = json.loads(self._path.read_bytes())
            self._before.take(Samples.from_plain(left), is_alive=False)

    def write(self, samples: Samples) -> None:
        samples.take(self._before, is_alive=False)
        plain = {**samples.to_plain(), "pid": os.getpid(), "written_at": self._clock()}
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(plain), encoding="utf-8")
        new.replace(self._path)

    def together(self) -> tuple[Samples, int]:
        """All workers' values as one, and how many of them are alive."""
        combined, alive = Samples(), 0
        for path in self._folder.glob("metrics-*.json"):
            plain = json.loads(path.read_bytes())
            is_fresh = self._clock() - plain["written_at"] <= FRESH_SECONDS
            is_alive = is_fresh and os.path.exists(f"/proc/{plain['pid']}")
            combined.take(Samples.from_plain(plain), is_alive=is_alive)
            alive += is_alive
        return combined, alive
