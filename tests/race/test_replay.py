"""What the verdict of a race is worked out from."""

from bisect import bisect_right

import pytest

from tests.race import replay
from tests.race.journal import Line

HOST_MB = 1024
#: One server fills the only host, and its claim ends at 10 s, or it is deleted then.
CLAIMED = Line(1, 5.0, "claim", "a", "h1", HOST_MB, None, "req")
ENDED = Line(2, 10.0, "end", "a", "h1", HOST_MB, None, None)
ARRIVED = Line(2, 6.0, "server", "a", "h1", HOST_MB, "active", None)
DELETED = Line(3, 10.0, "server", "a", "h1", HOST_MB, "deleted", None)


@pytest.mark.parametrize(
    ("lines", "freed_at", "free_from"),
    [
        pytest.param([CLAIMED, ENDED], {}, 10.0 + replay.COMMIT_SECONDS, id="soon"),
        pytest.param([CLAIMED, ARRIVED, DELETED], {"a": 12.5}, 12.5, id="reported"),
    ],
)
def test_memory_is_free_once_everybody_can_see_it(lines, freed_at, free_from):
    slots = replay.Slots(lines, freed_at, ["h1"], HOST_MB, HOST_MB)

    def at(moment):
        return slots.slots[bisect_right(slots.times, moment) - 1]

    moments = (4.9, 5.0, free_from - 0.01, free_from)
    assert [at(moment) for moment in moments] == [1, 0, 0, 1]
