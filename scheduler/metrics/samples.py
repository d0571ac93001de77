"""The values of metrics at one moment, of one worker or of several together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.metrics.catalogue import BY_NAME, SECONDS_BUCKETS, Kind, Metric

Labels = tuple[str, ...]
"""The values of a metric's labels, in the catalogue's order."""


@dataclass(slots=True)
class Distribution:
    """How many values fell into each bucket (the last: above all bounds), and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS_BUCKETS) + 1))
    total: float = 0.0

    def add(self, other: Distribution) -> None:
        """Count what *other* has counted as well."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


@dataclass(slots=True)
class Samples:
    """Values by metric name and labels; ``read_at`` is when the worker has read the hosts last."""

    values: dict[tuple[str, Labels], float] = field(default_factory=dict)
    distributions: dict[tuple[str, Labels], Distribution] = field(default_factory=dict)
    read_at: float = float("-inf")

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Make *value* that of *metric*."""
        self.values[metric.name, labels] = value

    def of(self, metric: Metric) -> Iterator[tuple[Labels, float]]:
        """The values of one counter or gauge."""
        return ((key[1], value) for key, value in self.values.items() if key[0] == metric.name)

    def distributions_of(self, metric: Metric) -> Iterator[tuple[Labels, Distribution]]:
        """The values of one histogram."""
        found = self.distributions.items()
        return ((key[1], value) for key, value in found if key[0] == metric.name)

    def take(self, other: Samples, *, is_alive: bool) -> None:
        """Put the values of another worker to these; a dead one's gauges tell nothing any more."""
        is_newer = other.read_at > self.read_at
        for (name, labels), value in other.values.items():
            metric = BY_NAME.get(name)
            if metric is None or (metric.kind.is_gauge and not is_alive):
                continue
            known = self.values.get((name, labels))
            combined = value if known is None else _combine(metric.kind, known, value, is_newer)
            self.values[name, labels] = combined
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
        """What :meth:`to_plain` made."""
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
    if kind in (Kind.COUNTER, Kind.SUM):
        return known + value
    if kind is Kind.MAX:
        return max(known, value)
    if kind is Kind.MIN:
        return min(known, value)
    return value if is_newer else known
