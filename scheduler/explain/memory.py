"""The last decision records of one worker, as many as fit into a number of bytes."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scheduler.engine.record import DecisionRecord

#: What a record takes besides what its size depends on.
_BASE_BYTES: Final = 4000
_PAIR_BYTES: Final = 150
#: One reason with the closest host and its value.
_CLOSEST_BYTES: Final = 700
#: One weigher's numbers for the best sixteen hosts.
_PART_BYTES: Final = 700


class Memory:
    """The latest records, oldest first; the oldest make room when *limit_bytes* are exceeded.

    One half of the bytes is for records, the other for what they say of every host, which goes
    first.  May be read by any thread.  With a limit of 0 nothing is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._kept: deque[tuple[DecisionRecord, int]] = deque()
        self._record_bytes = 0
        self._detailed: deque[DecisionRecord] = deque()
        self._detail_bytes = 0
        self._sequence = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """About how much memory all of it takes."""
        return self._record_bytes + self._detail_bytes

    @property
    def last_sequence(self) -> int:
        """The number of the latest record; 0 before the first."""
        return self._sequence

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, position: int) -> DecisionRecord:
        """Takes no lock: reports are made wherever a signal finds the process."""
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

    def since(self, sequence: int) -> list[DecisionRecord]:
        """Those with a higher ``sequence``, the oldest first."""
        return [record for record in self if record.sequence > sequence]

    def get(self, sequence: int) -> DecisionRecord | None:
        """The one of that ``sequence``; None if it is not kept."""
        return next((record for record in self if record.sequence == sequence), None)

    def of(self, name: str) -> list[DecisionRecord]:
        """Those of a request id or of an instance's uuid, the newest first."""
        found = [r for r in self if name == r.request_id or name in r.instance_uuids]
        found.reverse()
        return found

    def append(self, record: DecisionRecord) -> None:
        """Keep *record*, which is finished."""
        nbytes = size_of(record)
        with self._lock:
            self._sequence += 1
            record.sequence = self._sequence
            self._kept.append((record, nbytes))
            self._record_bytes += nbytes
            if record.verdicts is not None:
                self._detailed.append(record)
                self._detail_bytes += record.verdicts.nbytes
            while self._detailed and self._detail_bytes > self.limit_bytes // 2:
                self._forget_a_detail()
            while self._kept and self._record_bytes > (self.limit_bytes + 1) // 2:
                self._forget_a_record()

    def _forget_a_detail(self) -> None:
        record = self._detailed.popleft()
        if record.verdicts is not None:
            self._detail_bytes -= record.verdicts.nbytes
            record.verdicts = None

    def _forget_a_record(self) -> None:
        record, nbytes = self._kept.popleft()
        self._record_bytes -= nbytes
        if record.verdicts is not None:
            self._forget_a_detail()


def size_of(record: DecisionRecord) -> int:
    """About how many bytes *record* takes without its details; rather too many than too few."""
    pairs = len(record.chosen) + sum(map(len, record.alternates))
    texts = sys.getsizeof(record.failure) + 85 * len(record.instance_uuids)
    counts = 300 * len(record.filters)
    if record.verdicts is not None:  # the closest host of each comes when the reply is sent
        counts += _CLOSEST_BYTES * len(record.verdicts.reasons)
    top = 0
    if record.top is not None:
        pairs += len(record.top.pairs)
        top = _PART_BYTES * len(record.top.parts)
    return _BASE_BYTES + _PAIR_BYTES * pairs + texts + counts + top + _request_bytes(record.request)


def _request_bytes(spec: Any) -> int:
    """Rather too much than too little for a request object with all that is in it."""
    group = getattr(spec, "instance_group", None)
    names = len(getattr(group, "members", None) or ()) + len(getattr(group, "hosts", None) or ())
    flavor = getattr(spec, "flavor", None)
    extra: Sequence[Any] = getattr(flavor, "extra_specs", None) or ()
    named = len(getattr(spec, "ignore_hosts", None) or ())
    return 8_000 + 120 * (names + named) + 300 * len(extra)
