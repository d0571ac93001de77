"""The values of metrics at one moment, of one worker or of several together, for Prometheus."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

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

_BOUNDS = [floatToGoString(bound) for bound in (*SECONDS_BUCKETS, float("inf"))]


@dataclass(slots=True)
class Distribution:
    """Number of values in each bucket (the last: above all bounds), and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self.counts[bisect.bisect_left(SECONDS_BUCKETS, seconds)] += 1
        self.total += seconds

    def add(self, other: Distribution) -> None:
        """Count what *other* has counted as well."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


@dataclass(slots=True)
class Samples:
    """Values by metric name and labels; ``read_at`` is when the worker has read the hosts last."""

    values: dict[Key, float] = field(default_factory=dict)
    distributions: dict[Key, Distribution] = field(default_factory=dict)
    read_at: float = float("-inf")

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Make *value* that of *metric*."""
        self.values[metric.name, labels] = value

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add *value* to that of *metric*."""
        key = metric.name, labels
        self.values[key] = self.values.get(key, 0) + value

    def distribution(self, metric: Metric, *labels: str) -> Distribution:
        """That of *metric*, empty at first."""
        return self.distributions.setdefault((metric.name, labels), Distribution())

    def take(self, other: Samples, *, is_alive: bool) -> None:
        """Add the values of another worker; a dead one's gauges say nothing any more."""
        is_newer = other.read_at > self.read_at
        for key, value in other.values.items():
            metric = BY_NAME.get(key[0])
            if metric is None or (metric.kind.is_gauge and not is_alive):
                continue
            known = self.values.get(key)
            combined = value if known is None else _combine(metric.kind, known, value, is_newer)
            self.values[key] = combined
        for key, distribution in other.distributions.items():
            if key[0] in BY_NAME:
                self.distributions.setdefault(key, Distribution()).add(distribution)
        if is_alive and is_newer:
            self.read_at = other.read_at

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "values": [[name, labels, value] for (name, labels), value in self.values.items()],
            "distributions": [
                [name, labels, each.counts, each.total]
                for (name, labels), each in self.distributions.items()
            ],
            "read_at": None if self.read_at == float("-inf") else self.read_at,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Samples:
        """Samples from the output of :meth:`to_plain`."""
        read_at = plain["read_at"]
        return cls(
            {(name, tuple(labels)): value for name, labels, value in plain["values"]},
            {
                (name, tuple(labels)): Distribution(counts, total)
                for name, labels, counts, total in plain["distributions"]
            },
            float("-inf") if read_at is None else read_at,
        )


def _combine(kind: Kind, known: float, value: float, is_newer: bool) -> float:
    if kind is Kind.MAX:
        return max(known, value)
    if kind is Kind.MIN:
        return min(known, value)
    if kind is Kind.NEWEST:
        return value if is_newer else known
    return known + value


def render(samples: Samples, accept: str) -> tuple[bytes, str]:
    """*samples* in the format that the header *accept* asks for, and its content type."""
    registry = CollectorRegistry()
    registry.register(_Collector(samples))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collector(Collector):
    """Hands the library samples that were made elsewhere."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterable[Family]:
        """Every metric that has values, in the catalogue's order."""
        families = (_family(metric, self._samples) for metric in CATALOGUE)
        return [family for family in families if family.samples]


def _family(metric: Metric, samples: Samples) -> Family:
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for (name, labels), each in sorted(samples.distributions.items(), key=lambda i: i[0]):
            if name == metric.name:
                buckets = list(zip(_BOUNDS, itertools.accumulate(each.counts), strict=True))
                histogram.add_metric(labels, buckets, each.total)
        return histogram
    kind = GaugeMetricFamily if metric.kind.is_gauge else CounterMetricFamily
    simple = kind(metric.name, metric.help, labels=metric.labels)
    for (name, labels), value in sorted(samples.values.items()):
        if name == metric.name:
            simple.add_metric(labels, value)
    return simple
