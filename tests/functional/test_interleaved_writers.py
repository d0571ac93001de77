"""Whatever is written between two refreshes, and in whatever order it is committed, is seen."""

import pytest

from scheduler.db import migration
from scheduler.db.database import Database
from tests.unit.db.builders import without_triggers
from tests.world import interleaving

pytestmark = pytest.mark.functional

STEPS = 25


@pytest.fixture(params=["mariadb_url", "postgresql_url"])
def database(request):
    database = Database(request.getfixturevalue(request.param))
    migration.sync(database)
    yield database
    database.dispose()


@pytest.mark.parametrize("counted", [True, False])
def test_every_refresh_and_decision_is_that_of_a_full_read(database, counted):
    if not counted:  # as in a database that Nova made
        without_triggers(database)
    interleaving.run(database, 1, STEPS, counted=counted)
