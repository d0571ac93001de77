"""The last decision records of one worker, as many as fit into a number of bytes."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

from scheduler.explain.record import DecisionRecord

#: What a record takes besides what its size depends on.
_BASE_BYTES: Final = 2500
_PAIR_BYTES: Final = 150


class Memory:
    """The latest records, oldest first; the oldest make room when *limit_bytes* are exceeded.

    May be read by any thread.  With a limit of 0 nothing is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.nbytes = 0
        self._kept: deque[tuple[DecisionRecord, int]] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, position: int) -> DecisionRecord:
        return self._kept[position][0]

    def __iter__(self) -> Iterator[DecisionRecord]:
        with self._lock:
            kept = list(self._kept)
        return iter([record for record, _nbytes in kept])

    def latest(self, most: int) -> list[DecisionRecord]:
        """At most that many, the newest first."""
        found = list(self)
        found.reverse()
        return found[:most]

    def of(self, name: str) -> list[DecisionRecord]:
        """Those of a request id or of an instance's uuid, the newest first."""
        found = [r for r in self if name == r.request_id or name in r.instance_uuids]
        found.reverse()
        return found

    def append(self, record: DecisionRecord) -> None:
        """Keep *record*, which is finished."""
        nbytes = size_of(record)
        with self._lock:
            self._kept.append((record, nbytes))
            self.nbytes += nbytes
            while self._kept and self.nbytes > self.limit_bytes:
                self.nbytes -= self._kept.popleft()[1]


def size_of(record: DecisionRecord) -> int:
    """About how many bytes *record* takes; rather too many than too few."""
    pairs = len(record.chosen) + sum(map(len, record.alternates))
    texts = sys.getsizeof(record.failure) + 85 * len(record.instance_uuids)
    return _BASE_BYTES + _PAIR_BYTES * pairs + texts + 300 * len(record.filters)
