"""Two hosts on a database of their own."""

import pytest

from tests.unit.conductor_stub.compute.fleets import Fleet


@pytest.fixture
def fleet(database):
    fleet = Fleet(database)
    fleet.ends.news.clear()
    return fleet
