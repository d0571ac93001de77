"""Liveness: the rows noted are those whose verdict is no longer what it was."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.hosts import columns
from scheduler.hosts.liveness import Liveness
from tests.builders import NOW, a_fleet, candidates

DOWN_SECONDS = 60.0
BIT = columns.BITS[columns.HEARD_IN_TIME]

_hosts = st.sampled_from(["h1", "h2", "h3"])
_times = st.sampled_from([-121.0, -60.0, -59.5, -1.0, 0.0, 60.0, 60.5, 61.0, 130.0])
_steps = st.lists(st.tuples(_hosts, _times, _times), max_size=12)


@settings(deadline=None)
@given(_steps)
def test_rows_that_are_not_noted_are_judged_as_before(steps):
    table = a_fleet({}, {}, {"last_seen": float("-inf")})
    liveness = Liveness(table, DOWN_SECONDS)
    liveness.check(NOW)
    before = candidates(table, NOW, DOWN_SECONDS).service_up.tolist()
    for host, last_seen, now in steps:
        table.set_service(host, {}, NOW + last_seen)
        begin = table.changes.position
        liveness.check(NOW + now)
        noted = table.changes.since(begin, BIT)
        after = candidates(table, NOW + now, DOWN_SECONDS).service_up.tolist()
        changed = {row for row in range(3) if before[row] != after[row]}
        assert noted == dict.fromkeys(changed, BIT)
        before = after


def test_time_that_passes_without_a_flip_costs_no_look_at_the_rows(monkeypatch):
    table = a_fleet({}, {})
    liveness = Liveness(table, DOWN_SECONDS)
    liveness.check(NOW)
    looks = []
    monkeypatch.setattr(liveness, "_check_rows", lambda rows, now: looks.append(len(rows)))
    liveness.check(NOW + 30)
    assert looks == []
    table.set_service("h1", {}, NOW + 30)
    liveness.check(NOW + 31)
    assert looks == [1]
