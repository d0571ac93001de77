"""Ids of claims that a worker has met, and those that may come yet."""

import pytest

from scheduler.claims.seen import MISSED_AT_MOST, MISSED_SECONDS, SeenIds

LATER = MISSED_SECONDS + 1


@pytest.mark.parametrize(
    ("notes", "newest", "missed"),
    [
        pytest.param([], 0, (), id="none"),
        pytest.param([({1, 2, 3}, 0)], 3, (), id="one after the other"),
        pytest.param([({1}, 0), ({4}, 0)], 4, (2, 3), id="some passed over"),
        pytest.param([({1}, 0), ({4}, 0), ({2}, 1)], 4, (3,), id="one comes late"),
        pytest.param([(set(), 0)], 0, (), id="none so far"),
        pytest.param([({1}, 0), ({3}, 0), (set(), MISSED_SECONDS)], 3, (2,), id="one may come yet"),
        pytest.param([({1}, 0), ({3}, 0), (set(), LATER)], 3, (), id="one never comes"),
        pytest.param([({2}, 0), ({4}, LATER)], 4, (3,), id="given up one by one"),
        pytest.param([({4}, 0), ({2}, 0), ({2, 4}, 0)], 4, (1, 3), id="met again"),
        pytest.param([({1}, 0), (set(), 0)], 1, (), id="nothing new"),
    ],
)
def test_what_is_missed(notes, newest, missed):
    seen = SeenIds()
    for ids, now in notes:
        seen.note(ids, now)
    assert (seen.newest, seen.missed) == (newest, missed)


def test_only_the_latest_of_many_are_waited_for():
    seen = SeenIds()
    seen.note({10 * MISSED_AT_MOST}, 0)
    assert seen.missed == tuple(range(9 * MISSED_AT_MOST, 10 * MISSED_AT_MOST))
    seen.note({10 * MISSED_AT_MOST + 3}, 1)
    assert len(seen.missed) == MISSED_AT_MOST
    assert seen.missed[-2:] == (10 * MISSED_AT_MOST + 1, 10 * MISSED_AT_MOST + 2)
