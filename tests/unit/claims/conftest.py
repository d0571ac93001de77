"""A database with all tables, hosts in it, and schedulers on it.

The tests hold on every engine: another folder runs them on servers by importing them and giving
them a ``database`` of its own.
"""

import pytest

from tests.unit.claims.fleets import Fleet, Worker
from tests.unit.hosts.reading import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(database, clock):
    return Fleet(database, clock)


@pytest.fixture
def worker(fleet, clock):
    made = []

    def make(**how):
        made.append(Worker(fleet.database, clock, **how))
        return made[-1]

    yield make
    for each in made:
        each.close()
