"""Which claims a worker has met, by their ids: what a look need not ask for once more.

An id is drawn when a claim is written, and shows when its transaction is committed: one that was
passed over may come later, or never where the transaction was undone.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

#: How long an id that was passed over is waited for, and how many of them.  Claims that come later
#: still are found by a look at all open ones.
MISSED_SECONDS: Final = 30.0
MISSED_AT_MOST: Final = 1000


class SeenIds:
    """All ids up to ``newest`` are met but those that are ``missed``."""

    def __init__(self) -> None:
        self.newest = 0
        self._missed: dict[int, float] = {}

    @property
    def missed(self) -> tuple[int, ...]:
        """Ids below the newest that may come yet, those first that are missed for longest."""
        return tuple(self._missed)

    def note(self, ids: Set[int], now: float) -> None:
        """Claims with these *ids* were met; *now* in seconds since the epoch."""
        last = max(ids, default=0)
        if last > self.newest:
            first = max(self.newest + 1, last - MISSED_AT_MOST)
            self._missed.update(dict.fromkeys(range(first, last), now))
            self.newest = last
        for number in self._missed.keys() & ids:
            del self._missed[number]
        self._give_up(now)

    def _give_up(self, now: float) -> None:
        while self._missed:
            longest = next(iter(self._missed))
            is_old = now - self._missed[longest] > MISSED_SECONDS
            if not is_old and len(self._missed) <= MISSED_AT_MOST:
                return
            del self._missed[longest]
