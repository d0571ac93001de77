"""Samples in the formats that Prometheus reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

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

from scheduler.metrics.catalogue import CATALOGUE, SECONDS_BUCKETS, Kind, Metric
from scheduler.metrics.samples import Distribution, Samples

_BOUNDS = [floatToGoString(bound) for bound in (*SECONDS_BUCKETS, float("inf"))]


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
        """Every family that has values."""
        return families(self._samples)


def families(samples: Samples) -> Iterator[Family]:
    """The metrics of the catalogue that *samples* has values of, in the catalogue's order."""
    for metric in CATALOGUE:
        family = _family(metric, samples)
        if family.samples:
            yield family


def _family(metric: Metric, samples: Samples) -> Family:
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, distribution in sorted(samples.distributions_of(metric)):
            histogram.add_metric(labels, _buckets(distribution), distribution.total)
        return histogram
    kind = GaugeMetricFamily if metric.kind.is_gauge else CounterMetricFamily
    simple = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in sorted(samples.of(metric)):
        simple.add_metric(labels, value)
    return simple


def _buckets(distribution: Distribution) -> list[tuple[str, float]]:
    """Counts up to each bound."""
    return list(zip(_BOUNDS, itertools.accumulate(distribution.counts), strict=True))
