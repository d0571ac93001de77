"""What a worker counts of its decisions and reads."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import errors
from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import SELECTED
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue, counters
from scheduler.metrics.catalogue import SECONDS_BUCKETS, Metric
from scheduler.metrics.counters import Counters
from scheduler.metrics.samples import Samples
from tests.unit.metrics.builders import a_record

BOOKED = "booked"


def written(counted: Counters) -> Samples:
    samples = Samples()
    counted.write_to(samples)
    return samples


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
    counted = Counters()
    counted.decided(a_record(**fields))
    assert written(counted).values[metric.name, labels] == expected


def test_times_fall_into_buckets_of_every_stage_there_is() -> None:
    counted = Counters()
    for milliseconds in (0.0, 1.0, 1.1, 60_000.0):
        counted.decided(a_record(elapsed_ms=milliseconds, stages_ms={"claim": milliseconds}))
    values = written(counted).values
    *counts, total = values[catalogue.DECISION_SECONDS.name, ()]
    assert counts == [1, 1, 1, *[0] * (len(SECONDS_BUCKETS) - 3), 1]
    assert total == pytest.approx(60.0021)
    name = catalogue.STAGE_SECONDS.name
    stages = {labels: sum(counts[:-1]) for (of, labels), counts in values.items() if of == name}
    assert stages == {
        **dict.fromkeys((("refresh",), ("filter",), ("weigh",), ("later_instances",)), 0),
        ("claim",): 4,
    }


def test_reasons_that_others_make_up_do_not_grow_without_end() -> None:
    counted, name = Counters(), catalogue.REMOVED.name
    for number in (*range(counters.MOST_LABELS + 3), 0):
        removed = {f"reason-{number}": 2}
        counted.decided(a_record(filters=[FilterCount("Theirs", 9, 7, removed)]))
    values = written(counted).values
    assert sum(of == name for of, _labels in values) == counters.MOST_LABELS + 1
    assert [values[name, ("Theirs", "reason-0")], values[name, counters.OTHERS]] == [4, 6]


def test_reads() -> None:
    counted = Counters()
    before = written(counted)
    plain = before.to_plain()
    counted.read(ReadCost(full=True, seconds=0.2, rows=30, repairs=1))
    counted.read(ReadCost(full=False, seconds=0.002, rows=4))
    counted.read(ReadCost(full=False, seconds=9.0, failed=True))
    values = written(counted).values
    metrics = catalogue.ROWS_READ, catalogue.REPAIRS, catalogue.READ_FAILURES
    assert [values[each.name, ()] for each in metrics] == [34, 1, 1]
    seconds = [values[catalogue.READ_SECONDS.name, (each,)][-1] for each in counters.KINDS]
    assert seconds == [0.2, 0.002]
    assert before.to_plain() == plain, "what was written does not change any more"
