"""Whatever is written between two refreshes, and in whatever order it is committed, is seen."""

import pytest

from tests.unit.db.builders import without_triggers
from tests.world import databases, interleaving

pytestmark = pytest.mark.functional

STEPS = 25


@pytest.fixture(params=["mariadb_url", "postgresql_url"])
def database(request):
    with databases.synced(request.getfixturevalue(request.param)) as database:
        yield database


@pytest.mark.parametrize("counted", [True, False])
def test_every_refresh_and_decision_is_that_of_a_full_read(database, counted):
    if not counted:  # as in a database that Nova made
        without_triggers(database)
    interleaving.run(database, 1, STEPS, counted=counted)
