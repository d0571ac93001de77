"""Schedulers that race for the hosts of a simulated fleet."""

from benchmarks.schedulers import Race, a_fleet
from scheduler.replay.workload import Arrival, a_flavor

SECONDS = 0.02
WHOLE_HOST = a_flavor("64/200", 1, 64, 200 * 1024)


def raced(schedulers, apart, hosts=2):
    race = Race(a_fleet(hosts), schedulers, SECONDS)
    race.play([(number * apart, Arrival(str(number), 0, WHOLE_HOST, (1,))) for number in range(2)])
    return race


def test_one_scheduler_never_loses_and_answers_one_after_the_other():
    race = raced(1, 0)
    assert (race.lost, race.refused) == (0, 0)
    assert sorted(race.waits) == [SECONDS, 2 * SECONDS]


def test_who_did_not_see_a_claim_on_its_host_decides_anew():
    race = raced(2, 0, hosts=1)
    assert (race.decisions, race.lost, race.refused) == (3, 1, 1)


def test_claims_that_were_written_before_are_seen():
    assert raced(2, 2 * SECONDS).lost == 0
