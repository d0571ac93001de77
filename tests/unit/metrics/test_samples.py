"""How the values of several workers become one."""

from __future__ import annotations

import json

import pytest

from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import Metric
from scheduler.metrics.samples import Samples
from scheduler.metrics.tally import Tally
from tests.unit.metrics.builders import a_record


def worker(value: float, read_at: float, *metrics: Metric) -> Samples:
    samples = Samples(read_at=read_at)
    for metric in metrics:
        samples.set(metric, value)
    return samples


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (catalogue.PLACED, 6),
        (catalogue.IN_FLIGHT, 6),
        (catalogue.STATE_AGE, 3),
        (catalogue.CONSUMER_UP, 1),
        (catalogue.INSTANCES, 2),
    ],
)
def test_three_workers(metric: Metric, expected: float) -> None:
    together = Samples()
    for value, read_at in ((1, 10.0), (2, 30.0), (3, 20.0)):
        together.take(worker(value, read_at, metric), is_alive=True)
    assert dict(together.of(metric)) == {(): expected}


@pytest.mark.parametrize(
    ("metric", "expected"), [(catalogue.PLACED, {(): 3.0}), (catalogue.IN_FLIGHT, {(): 1.0})]
)
def test_of_the_dead_only_what_they_counted_is_left(
    metric: Metric, expected: dict[tuple[str, ...], float]
) -> None:
    together = Samples()
    together.take(worker(2.0, 90.0, metric), is_alive=False)
    together.take(worker(1.0, 10.0, metric), is_alive=True)
    assert dict(together.of(metric)) == expected
    assert together.read_at == 10.0


def test_distributions_add_up() -> None:
    tally, together = Tally(), Samples()
    tally.decided(a_record(elapsed_ms=1.0))
    for _ in range(3):
        samples = Samples()
        tally.write_to(samples)
        together.take(samples, is_alive=True)
    (_labels, total) = next(iter(together.distributions_of(catalogue.DECISION_SECONDS)))
    assert (sum(total.counts), total.total) == (3, pytest.approx(0.003))


def test_metrics_of_another_release_are_left_out() -> None:
    together = Samples()
    together.take(Samples({("nova_scheduler_gone", ()): 1.0}), is_alive=True)
    assert together.values == {}


@pytest.mark.parametrize("read_at", [float("-inf"), 7.5])
def test_plain_and_back(read_at: float) -> None:
    tally, samples = Tally(), Samples(read_at=read_at)
    tally.decided(a_record())
    tally.write_to(samples)
    assert Samples.from_plain(json.loads(json.dumps(samples.to_plain()))) == samples
