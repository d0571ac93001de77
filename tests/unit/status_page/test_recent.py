"""Counting what the decisions of the last minutes came to."""

import pytest

from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.refusal import Refusal
from scheduler.status_page.recent import RATE_STEPS, RecentDecisions

HOUR = 3600


class Clock:
    def __init__(self):
        self.seconds = 1_000_000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recent(clock):
    return RecentDecisions(clock)


def a_record(outcome=SELECTED, **removed):
    record = DecisionRecord("req-1", (), 1, 0, outcome=outcome)
    record.not_considered = {"service.unknown": 0}
    record.removed_before_filters = {"destination.other": 2}
    record.filters = [FilterCount("RamFilter", 10, 10 - sum(removed.values()), removed)]
    return record


def test_the_rate_counts_per_step(recent, clock):
    recent.note(a_record())
    recent.note(a_record("no_host_fits"))
    clock.seconds += 5
    recent.note(a_record())
    rate = recent.counts()["rate"]
    assert (rate["selected"][-3:], rate["refused"][-3:]) == ([0, 1, 1], [0, 1, 0])
    assert len(rate["selected"]) == len(rate["refused"]) == RATE_STEPS


@pytest.mark.parametrize(
    ("later", "outcomes"),
    [
        (0, {SELECTED: 1, "state_too_old": 2}),
        (HOUR - 60, {SELECTED: 1, "state_too_old": 2}),
        (HOUR, {}),
    ],
)
def test_outcomes_of_an_hour(recent, clock, later, outcomes):
    for outcome in (SELECTED, "state_too_old", "state_too_old"):
        recent.note(a_record(outcome))
    clock.seconds += later
    assert recent.counts()["outcomes"] == outcomes


def test_reasons_add_up_and_tell_refused_requests_apart(recent, clock):
    recent.note(a_record(short=4, other=1))
    clock.seconds += 120
    recent.note(a_record("no_host_fits", short=10))
    found = {(each["filter"], each["reason"]): each for each in recent.counts()["reasons"]}
    assert list(found) == [
        ("RamFilter", "short"),
        (None, "destination.other"),
        ("RamFilter", "other"),
    ]
    assert found["RamFilter", "short"] == {
        "filter": "RamFilter",
        "reason": "short",
        "refused_requests": 1,
        "hosts_of_refused": 10,
        "hosts": 14,
    }
    assert found[None, "destination.other"]["hosts"] == 4
    assert found["RamFilter", "other"]["refused_requests"] == 0


def test_of_a_later_instance_its_own_reasons_count(recent):
    record = a_record("no_host_fits", other=1)
    record.refusal = Refusal(7, 10, [], filters=[FilterCount("RamFilter", 10, 0, {"short": 10})])
    recent.note(record)
    found = {each["reason"]: each["hosts"] for each in recent.counts()["reasons"]}
    assert found == {"short": 10, "destination.other": 2}


def test_what_is_old_is_forgotten(recent, clock):
    recent.note(a_record("no_host_fits", short=1))
    clock.seconds += 2 * HOUR
    assert recent.counts()["reasons"] == []
    recent.note(a_record(other=1))
    assert [each["reason"] for each in recent.counts()["reasons"]] == ["destination.other", "other"]
    assert sum(recent.counts()["rate"]["selected"]) == 1


def test_a_clock_set_back_loses_nothing_new(recent, clock):
    recent.note(a_record())
    clock.seconds -= HOUR
    recent.note(a_record())
    assert recent.counts()["outcomes"] == {SELECTED: 1}
