"""What a worker counts of its decisions and reads."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import errors
from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import SELECTED
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue, tally
from scheduler.metrics.catalogue import SECONDS_BUCKETS, Metric
from scheduler.metrics.samples import Samples
from scheduler.metrics.tally import Tally
from tests.unit.metrics.builders import a_record

BOOKED = "booked"


def told(counted: Tally) -> Samples:
    samples = Samples()
    counted.write_to(samples)
    return samples


def value(samples: Samples, metric: Metric, *labels: str) -> float | None:
    return dict(samples.of(metric)).get(labels)


@pytest.mark.parametrize(
    ("fields", "metric", "labels", "expected"),
    [
        ({}, catalogue.DECISIONS, (SELECTED,), 1),
        ({}, catalogue.DECISIONS, (errors.NO_HOST_FITS,), 0),
        ({"outcome": errors.STATE_TOO_OLD}, catalogue.DECISIONS, (errors.STATE_TOO_OLD,), 1),
        ({}, catalogue.PLACED, (), 1),
        ({"chosen": []}, catalogue.PLACED, (), 0),
        ({"races_lost": 3}, catalogue.RACES_LOST, (), 3),
        ({"claim": BOOKED}, catalogue.CLAIMS, (BOOKED,), 1),
        ({"claim": None}, catalogue.CLAIMS, (BOOKED,), 0),
        ({}, catalogue.REMOVED, ("RamFilter", "ram.insufficient"), 2),
        ({"removed_before_filters": {"ignored": 4}}, catalogue.NOT_EVALUATED, ("ignored",), 4),
        ({"not_considered": {"gone": 5}}, catalogue.NOT_EVALUATED, ("gone",), 5),
    ],
)
def test_one_decision(
    fields: dict[str, Any], metric: Metric, labels: tuple[str, ...], expected: int
) -> None:
    counted = Tally()
    counted.decided(a_record(**fields))
    assert value(told(counted), metric, *labels) == expected


def test_times_fall_into_buckets() -> None:
    counted = Tally()
    for milliseconds in (0.0, 1.0, 1.1, 60_000.0):
        counted.decided(a_record(elapsed_ms=milliseconds, stages_ms={"claim": milliseconds}))
    samples = told(counted)
    (_labels, total) = next(iter(samples.distributions_of(catalogue.DECISION_SECONDS)))
    assert [
        bound for bound, count in zip(SECONDS_BUCKETS, total.counts, strict=False) if count
    ] == [
        0.0005,
        0.001,
        0.0025,
    ]
    assert (total.counts[-1], sum(total.counts)) == (1, 4)
    assert total.total == pytest.approx(60.0021)
    stages = dict(samples.distributions_of(catalogue.STAGE_SECONDS))
    assert {labels: sum(each.counts) for labels, each in stages.items()} == {
        ("refresh",): 0,
        ("filter",): 0,
        ("weigh",): 0,
        ("claim",): 4,
        ("later_instances",): 0,
    }


def test_reasons_that_others_make_up_do_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "MOST_LABELS", 3)
    counted = Tally()
    for number in range(10):
        removed = {f"reason-{number}": 2}
        counted.decided(a_record(filters=[FilterCount("Theirs", 9, 7, removed)]))
    counted.decided(a_record(filters=[FilterCount("Theirs", 9, 7, {"reason-0": 1})]))
    assert counted.removed == {
        ("Theirs", "reason-0"): 3,
        ("Theirs", "reason-1"): 2,
        ("Theirs", "reason-2"): 2,
        tally.OTHERS: 14,
    }
    assert counted.outcomes[SELECTED] == 11


def test_reads() -> None:
    counted = Tally()
    counted.read(ReadCost(full=True, seconds=0.2, rows=30, repairs=1))
    counted.read(ReadCost(full=False, seconds=0.002, rows=4))
    counted.read(ReadCost(full=False, seconds=9.0, failed=True))
    samples = told(counted)
    assert value(samples, catalogue.ROWS_READ) == 34
    assert value(samples, catalogue.REPAIRS) == 1
    assert value(samples, catalogue.READ_FAILURES) == 1
    kinds = dict(samples.distributions_of(catalogue.READ_SECONDS))
    assert {labels: each.total for labels, each in kinds.items()} == {
        ("full",): 0.2,
        ("changes",): 0.002,
    }


def test_what_is_told_does_not_change_any_more() -> None:
    counted = Tally()
    before = told(counted)
    plain = before.to_plain()
    counted.decided(a_record())
    assert before.to_plain() == plain
