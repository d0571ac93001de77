"""When each line of the journal could be seen: somebody looks all the time.

A line is written before its transaction is committed, and says when it was written.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Final

from benchmarks.race import journal
from scheduler.claims.seen import SeenIds

LOOK_SECONDS: Final = 0.02


class Sight:
    """Watches the journal in the database at *url* in a thread of its own, until :meth:`close`."""

    def __init__(self, url: str) -> None:
        #: By the number of a line the time, in seconds since the epoch, by which it was visible.
        self.seen_at: dict[int, float] = {}
        self._seen = SeenIds()
        self._connection = journal.connect(url)
        self._error: BaseException | None = None
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sight", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look once more and end; raises what went wrong in the thread."""
        self._stops.set()
        self._thread.join()
        if self._error is not None:
            raise RuntimeError("the journal was not watched to its end") from self._error
        with contextlib.closing(self._connection):
            self.look()

    def look(self) -> None:
        """Note the lines that are there and were not at the last look."""
        numbers = journal.numbers(self._connection, self._seen.newest, self._seen.missed)
        now = time.time()
        self.seen_at.update(dict.fromkeys(numbers, now))
        self._seen.note(numbers, now)

    def _run(self) -> None:
        try:
            while not self._stops.wait(LOOK_SECONDS):
                self.look()
        except BaseException as error:  # noqa: BLE001 - told by close
            self._error = error
