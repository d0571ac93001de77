"""Whatever is written between two refreshes, and in whatever order it is committed, is seen."""

import pytest

from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.db.tables import change_counters
from tests import interleaving

STEPS = 25


def a_database(tmp_path, *, counted):
    database = Database(f"sqlite:///{tmp_path}/nova.sqlite")
    migration.sync(database)
    if not counted:
        with database.write() as connection:
            connection.execute(change_counters.delete())
    return database


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_every_refresh_and_decision_is_that_of_a_full_read(tmp_path, seed, counted):
    database = a_database(tmp_path, counted=counted)
    interleaving.run(database, seed, STEPS, counted=counted)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_a_change_after_a_lull_is_seen_at_once(tmp_path, seed, counted):
    database = a_database(tmp_path, counted=counted)
    interleaving.run_with_lulls(database, seed, STEPS, counted=counted)


def test_without_the_overlap_something_is_missed(tmp_path):
    database = a_database(tmp_path, counted=True)
    with pytest.raises(AssertionError):
        interleaving.run(database, 1, STEPS, counted=True, overlap_seconds=0)
