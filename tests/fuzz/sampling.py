"""Inputs of a target by chance, and always the same."""

from __future__ import annotations

import random

from tests.fuzz.tally import Tally
from tests.fuzz.targets import Target
from tests.fuzz.world import World

SEED = 20161006


def tried_out(world: World, target: Target, inputs: int = 0, seed: int = SEED) -> Tally:
    """What became of so many inputs of *target*, or as many as ``make test`` gives it."""
    chance, tally = random.Random(seed), Tally()
    seeds = list(target.seeds())
    for _ in range(inputs or target.few):
        data = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 2))):
            data = target.mutate(data, 1 << 16, chance.getrandbits(31))
        tally.count(data, lambda data=data: target.try_out(world, data))
    return tally
