"""Whatever is written between two refreshes, and in whatever order it is committed, is seen."""

import pytest

from tests.builders import examples
from tests.unit.db.builders import without_triggers
from tests.world import interleaving

pytestmark = pytest.mark.slow

STEPS = 25


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("seed", range(examples(1)))
def test_every_refresh_and_decision_is_that_of_a_full_read(synced_database, seed, counted):
    if not counted:
        without_triggers(synced_database)
    interleaving.run(synced_database, seed, STEPS, counted=counted)


def test_without_the_overlap_something_is_missed(synced_database):
    without_triggers(synced_database)
    with pytest.raises(AssertionError):
        interleaving.run(synced_database, 1, STEPS, counted=False, overlap_seconds=0)
