"""The race harness at a size of seconds: what it promises at full size holds here, too."""

import pytest

from scheduler import errors
from scheduler.recording import checking
from scheduler.recording.segments import Segment
from tests.race import allocations, run
from tests.race.callers import hosts_of
from tests.race.plan import Plan

pytestmark = pytest.mark.functional
TINY = {"callers": 16, "hosts": 4, "host_mb": 8192, "edge_requests": 30, "answer_seconds": 5.0}


def test_nothing_is_promised_twice_and_nothing_is_lost(transport_url, mariadb_url, tmp_path):
    plan = Plan(requests=130, daemon_every=4, **TINY)
    outcome = run.race_on(plan, tmp_path, transport_url, mariadb_url)
    text = run.render(plan, outcome)
    assert not run.broken(plan, outcome), text
    assert "Every promise was kept." in text
    assert outcome.counts["kills"], text
    # How full it gets depends on what killed schedulers have claimed, and for how long.
    assert any(each.failure == "NoValidHost" for each in outcome.requests), text
    recorded, answers = checking.Recheck(), set()
    for path in (tmp_path / "recording").iterdir():
        segment = Segment(path, errors.Faults(lenient=True))  # of those that were killed
        recorded.play(segment)
        for _place, line in segment:
            answers |= {
                (tuple(line["uuids"]), *(host for host, _node in (line["answer"] or [()])[0]))
            }
    tally, answered = recorded.tally, [each for each in outcome.requests if each.failure is None]
    assert tally.different == []
    missing = [each for each in answered if (each.uuids, *hosts_of(each.answer)) not in answers]
    assert len(missing) < len(answered) / 10  # a kill takes what was not on disk yet
    assert tally.same == tally.decisions - tally.not_comparable > 0


def test_nothing_is_promised_twice_with_a_worker_stopped_and_claims_that_go_back(
    transport_url, mariadb_url, tmp_path
):
    plan = Plan(requests=130, kill_seconds=0, break_seconds=2.0, fail_rate=0.0, **TINY)
    outcome = run.race_on(plan, tmp_path, transport_url, mariadb_url)
    text = run.render(plan, outcome)
    assert not run.broken(plan, outcome), text
    assert outcome.counts["times the claims went back"] == outcome.counts["workers stopped"] == 1


def test_without_claims_hosts_are_promised_twice(transport_url, mariadb_url, tmp_path):
    plan = Plan(requests=90, claims="none", kill_seconds=0, **TINY)
    outcome = run.race_on(plan, tmp_path, transport_url, mariadb_url)
    text = run.render(plan, outcome)
    assert outcome.double_bookings, text
    assert f"Without claims: {outcome.double_bookings} answers" in text
    assert outcome.counts["rescheduled"], text


def test_no_slot_is_lost_or_given_twice_in_placement(
    transport_url, mariadb_url, placement_server, tmp_path
):
    plan = Plan(
        requests=50, claims="placement", callers=32, hosts=8, host_mb=5 * 512, workers=1,
        kill_seconds=4, daemon_every=1, answer_seconds=8.0, tries=9,
    )  # fmt: skip
    outcome = allocations.race_on(plan, tmp_path, transport_url, mariadb_url, placement_server)
    text = allocations.render(plan, outcome)
    assert not allocations.broken(plan, outcome), text
    assert outcome.counts["daemons killed"], text
