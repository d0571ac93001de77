"""Whatever is written between two refreshes, and in whatever order it is committed, is seen."""

import pytest

from scheduler.db.tables import change_counters
from tests.world import interleaving

pytestmark = pytest.mark.slow

STEPS = 25


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_every_refresh_and_decision_is_that_of_a_full_read(synced_database, seed, counted):
    if not counted:
        with synced_database.write() as connection:
            connection.execute(change_counters.delete())
    interleaving.run(synced_database, seed, STEPS, counted=counted)


def test_without_the_overlap_something_is_missed(synced_database):
    with pytest.raises(AssertionError):
        interleaving.run(synced_database, 1, STEPS, counted=True, overlap_seconds=0)
