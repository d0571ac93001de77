"""What Prometheus reads."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import CATALOGUE, SECONDS_BUCKETS, Kind
from scheduler.metrics.exposition import render
from scheduler.metrics.samples import Distribution, Samples

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def everything() -> Samples:
    """A value of every metric, with labels that need quoting."""
    samples = Samples()
    for metric in CATALOGUE:
        labels = tuple(f'{label} "x"\n\\' for label in metric.labels)
        if metric.kind is Kind.HISTOGRAM:
            samples.distributions[metric.name, labels] = Distribution(
                [1] * (len(SECONDS_BUCKETS) + 1), 2.5
            )
        else:
            samples.set(metric, 3, *labels)
    return samples


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS, "text/html"])
def test_every_metric_is_told_in_every_format(accept: str) -> None:
    body, content_type = render(everything(), accept)
    is_open = accept == OPENMETRICS
    assert content_type.startswith("application/openmetrics-text" if is_open else "text/plain")
    parse = (
        openmetrics.text_string_to_metric_families if is_open else text_string_to_metric_families
    )
    found = {family.name: family for family in parse(body.decode())}
    assert list(found) == [metric.name.removesuffix("_total") for metric in CATALOGUE]
    for metric in CATALOGUE:
        family = found[metric.name.removesuffix("_total")]
        wanted = metric.kind.value if not metric.kind.is_gauge else "gauge"
        assert (family.type, family.documentation) == (wanted, metric.help)
        for sample in family.samples:
            assert {name: f'{name} "x"\n\\' for name in metric.labels}.items() <= (
                sample.labels.items()
            )


def test_buckets_count_what_is_below() -> None:
    body, _content_type = render(everything(), "")
    family = next(
        each
        for each in text_string_to_metric_families(body.decode())
        if each.name == catalogue.DECISION_SECONDS.name
    )
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in family.samples
        if sample.name.endswith("_bucket")
    ]
    bounds = [*SECONDS_BUCKETS, float("inf")]
    assert buckets == [(bound, number + 1) for number, bound in enumerate(bounds)]


def test_nothing_is_told_of_what_has_no_value() -> None:
    assert render(Samples(), "")[0] == b""


def test_names() -> None:
    for metric in CATALOGUE:
        assert metric.name.startswith("nova_scheduler_")
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)
