"""A thousand calls of every shape: all answered, and Nova's own filters and weighers agree."""

from collections import Counter

import pytest

from tests.nova import mixed

HOSTS = 30
CALLS_PER_ROUND = 100
#: Each round has a fleet of its own; what was picked is believed for two minutes.
ROUNDS = range(10)


@pytest.mark.parametrize("number", ROUNDS)
def test_nova_agrees_with_every_answer(number, world):
    fleet = mixed.install(world, f"r{number}", HOSTS)
    demands = mixed.Demands(fleet, seed=number)
    outcomes = Counter()
    complaints = []
    world.nova.do("judge.start")
    for call in range(CALLS_PER_ROUND):
        if call == CALLS_PER_ROUND // 2 and number % 4 == 0:
            world.nova.do("judge.report")
        shape, asked = demands.next()
        verdict = world.nova.do("judge.judged", **asked)
        outcomes[shape, verdict["hosts"] is not None] += 1
        complaints += [f"call {call}, {shape}: {each} {asked}" for each in verdict["complaints"]]
    mixed.remove(world, fleet)
    assert complaints == []
    assert outcomes.total() == CALLS_PER_ROUND
    served = sum(count for (_, is_served), count in outcomes.items() if is_served)
    assert CALLS_PER_ROUND // 2 < served < CALLS_PER_ROUND
