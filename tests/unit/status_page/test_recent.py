"""Counting what the decisions of the last minutes came to."""

import random
from collections import Counter

import pytest

from scheduler.engine.evaluation import FilterCount
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.refusal import Refusal
from scheduler.status_page.recent import RATE_STEPS, STEPS, RecentDecisions

HOUR = 3600
BEFORE = (None, "destination.other")


def a_record(outcome=SELECTED, **removed):
    record = DecisionRecord("req-1", (), 1, 0, outcome=outcome)
    record.never_evaluated = {"service.unknown": 0, "destination.other": 2}
    record.filters = [FilterCount("RamFilter", 10, 10 - sum(removed.values()), removed)]
    return record


def reasons_in(counts):
    return {(each.pop("filter"), each.pop("reason")): tuple(each.values()) for each in counts}


@pytest.mark.parametrize("seed", range(4))
def test_all_that_is_counted_is_that_of_the_window(seed):
    """Against all decisions, each kept with its time."""
    rng, now, noted = random.Random(seed), [1_000_000.0], []
    recent = RecentDecisions(lambda: now[0])
    for _ in range(300):
        outcome = rng.choice([SELECTED, "no_host_fits", "state_too_old"])
        removed = {name: rng.randrange(1, 4) for name in rng.sample(["short", "other"], 1)}
        recent.note(a_record(outcome, **removed))
        noted.append((now[0], outcome, removed))
        now[0] += rng.choice([0, 1, 5, 30, 60, 120, 0.1 * HOUR])
    found = recent.counts()
    step = int(now[0] // 5)
    hour = [each for each in noted if int(each[0] // 5) > step - STEPS]
    assert found["outcomes"] == Counter(outcome for _at, outcome, _removed in hour)
    for kind in ("selected", "refused"):
        of_kind = [at for at, outcome, _ in noted if (outcome == SELECTED) == (kind == "selected")]
        steps = Counter(int(at // 5) for at in of_kind)
        assert found["rate"][kind] == [steps[n] for n in range(step - RATE_STEPS + 1, step + 1)]
    totals = {}
    for _at, outcome, removed in hour:
        for key, hosts in {BEFORE: 2, **{("RamFilter", r): n for r, n in removed.items()}}.items():
            refused, all_hosts = totals.get(key, (0, 0))
            totals[key] = (refused + (outcome != SELECTED), all_hosts + hosts)
    assert reasons_in(found["reasons"]) == totals


def test_reasons_that_refused_the_most_requests_come_first():
    recent = RecentDecisions(lambda: 0.0)
    recent.note(a_record(short=4, other=1))
    recent.note(a_record("no_host_fits", short=10))
    keys = list(reasons_in(recent.counts()["reasons"]))
    assert keys == [("RamFilter", "short"), BEFORE, ("RamFilter", "other")]


def test_of_a_later_instance_its_own_reasons_count():
    recent, record = RecentDecisions(lambda: 0.0), a_record("no_host_fits", other=1)
    record.refusal = Refusal(7, [], filters=[FilterCount("RamFilter", 10, 0, {"short": 10})])
    recent.note(record)
    found = reasons_in(recent.counts()["reasons"])
    assert found == {("RamFilter", "short"): (1, 10), BEFORE: (1, 2)}


def test_servers_of_an_hour_and_a_day_and_times():
    now = [1_000_000.0]
    recent = RecentDecisions(lambda: now[0])
    several = {"placed": (SELECTED, 3, 12.0), "refused": ("no_host_fits", 2, 900.0)}
    for hours in (0, 3):
        now[0] += hours * HOUR
        for outcome, servers, took in several.values():
            record = a_record(outcome)
            record.num_instances, record.elapsed_ms, record.races_lost = servers, took, hours
            recent.note(record)
    found = recent.counts()
    assert found["servers"] == {
        "hour": {"placed": 3, "refused": 2, "races_lost": 6},
        "day": {"placed": 6, "refused": 4, "races_lost": 6},
    }
    middles = [2 ** (int(each) / found["buckets_per_doubling"]) for each in found["times"]]
    assert sorted(middles) == pytest.approx([12.0, 900.0], rel=0.1)
    now[0] += 24 * HOUR
    assert recent.counts()["servers"] == {"hour": {}, "day": {}}


def test_a_clock_set_back_loses_nothing_new():
    now = [1_000_000.0]
    recent = RecentDecisions(lambda: now[0])
    recent.note(a_record())
    now[0] -= HOUR
    recent.note(a_record())
    assert recent.counts()["outcomes"] == {SELECTED: 1}
