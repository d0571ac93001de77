"""What a worker counts of its decisions and reads."""

import pytest

from scheduler import errors
from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import SELECTED
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue, counters
from scheduler.metrics.catalogue import SECONDS_BUCKETS
from scheduler.metrics.counters import Counters
from scheduler.metrics.samples import Samples
from tests.unit.metrics.builders import a_record

BOOKED, DECISIONS = "booked", catalogue.DECISIONS.name


def written(counted):
    samples = Samples()
    counted.write_to(samples)
    return samples


def test_what_can_happen_is_there_at_once_and_one_decision_counts():
    counted = Counters()
    outcomes = {labels for name, labels in written(counted).values if name == DECISIONS}
    assert outcomes == {(code,) for code in (SELECTED, *errors.CODES)}
    never_evaluated = {"never_evaluated": {"ignored": 4, "gone": 5}}
    refused = errors.STATE_TOO_OLD
    counted.decided(a_record(outcome=refused, races_lost=3, claim=BOOKED, **never_evaluated))
    counted.decided(a_record(chosen=[]))
    values = written(counted).values
    assert {
        key: value for key, value in values.items() if value and not isinstance(value, list)
    } == {
        (DECISIONS, (refused,)): 1,
        (DECISIONS, (SELECTED,)): 1,
        (catalogue.PLACED.name, ()): 1,
        (catalogue.RACES_LOST.name, ()): 3,
        (catalogue.CLAIMS.name, (BOOKED,)): 1,
        (catalogue.REMOVED.name, ("RamFilter", "ram.insufficient")): 4,
        (catalogue.NOT_EVALUATED.name, ("ignored",)): 4,
        (catalogue.NOT_EVALUATED.name, ("gone",)): 5,
        (catalogue.RELOAD_OK.name, ()): 1,
    }


def test_times_fall_into_buckets_of_every_stage_there_is():
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


def test_reasons_that_others_make_up_do_not_grow_without_end():
    counted, name = Counters(), catalogue.REMOVED.name
    for number in (*range(counters.MOST_LABELS + 3), 0):
        removed = {f"reason-{number}": 2}
        counted.decided(a_record(filters=[FilterCount("Theirs", 9, 7, removed)]))
    values = written(counted).values
    assert sum(of == name for of, _labels in values) == counters.MOST_LABELS + 1
    assert [values[name, ("Theirs", "reason-0")], values[name, counters.OTHERS]] == [4, 6]


def test_reads():
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
