"""What the workers of one daemon know of each other.

A file in memory that the master makes and its workers inherit: one place per worker.  Whoever
takes a place holds a lock on it, which the kernel releases when the process ends, however it ends;
a worker that takes the place of one that died finds it free.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import math
import mmap
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

_PLACE = struct.Struct("=qddqqq")
_IN_HAND = struct.Struct("=q")


class Stage(enum.IntEnum):
    """How far a worker is."""

    NONE = 0
    """There never was one in this place."""
    STARTING = 1
    SERVING = 2
    RELOADING = 3
    STOPPING = 4


@dataclass(frozen=True)
class Sign:
    """A worker's latest sign of life; times in seconds of the clock that all processes share."""

    stage: Stage = Stage.NONE
    given_at: float = -math.inf
    #: When the state of the hosts was read; None where there is none, or not yet.
    read_at: float | None = None
    #: Compute hosts known; None where a worker knows of none.
    hosts: int | None = None
    #: Decisions made; None where a worker makes none.
    decided: int | None = None
    pid: int = 0


class Board:
    """Places for *workers* workers; *clock* gives seconds that never go back."""

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.workers = workers
        self.clock = clock
        self._file = os.memfd_create("nova-workers")
        self._in_hand_at = workers * _PLACE.size
        os.ftruncate(self._file, self._in_hand_at + workers * _IN_HAND.size)
        self._memory = mmap.mmap(self._file, self._in_hand_at + workers * _IN_HAND.size)
        self._place: int | None = None
        for place in range(workers):
            self._write(place, Sign())

    @property
    def place(self) -> int | None:
        """The place of this process, from 0 on; None if it has none."""
        return self._place

    def join(self) -> int:
        """Take a free place for this process; what one that died left there is overwritten.

        Returns how many requests that one had in hand.
        """
        self._place = None  # a fork has its parent's
        for place in range(self.workers):
            with contextlib.suppress(BlockingIOError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                self._place = place
                (left,) = _IN_HAND.unpack_from(self._memory, self._in_hand_of(place))
                self.show_in_hand(0)
                return int(left)
        return 0

    def show_in_hand(self, requests: int) -> None:
        """Show how many requests would be lost with this process; one too many shows nothing."""
        if self._place is not None:
            _IN_HAND.pack_into(self._memory, self._in_hand_of(self._place), requests)

    def give(self, sign: Sign) -> None:
        """Show *sign* in this process's place; one worker too many has none."""
        if self._place is not None:
            self._write(self._place, sign)

    def signs(self) -> list[Sign]:
        """The latest sign of each place."""
        return [self._read(place) for place in range(self.workers)]

    def is_complete(self) -> bool:
        """Whether a worker serves in every place."""
        return all(sign.stage in (Stage.SERVING, Stage.RELOADING) for sign in self.signs())

    def stale(self, limit_seconds: float) -> list[Sign]:
        """The latest signs of workers that gave none in that time, or were never forked."""
        now = self.clock()
        return [sign for sign in self.signs() if now - sign.given_at > limit_seconds]

    def _in_hand_of(self, place: int) -> int:
        return self._in_hand_at + place * _IN_HAND.size

    def _write(self, place: int, sign: Sign) -> None:
        _PLACE.pack_into(
            self._memory,
            place * _PLACE.size,
            sign.stage,
            sign.given_at,
            math.nan if sign.read_at is None else sign.read_at,
            -1 if sign.hosts is None else sign.hosts,
            -1 if sign.decided is None else sign.decided,
            sign.pid,
        )

    def _read(self, place: int) -> Sign:
        stage, given_at, read_at, hosts, decided, pid = _PLACE.unpack_from(
            self._memory, place * _PLACE.size
        )
        return Sign(
            Stage(stage),
            given_at,
            None if math.isnan(read_at) else read_at,
            None if hosts < 0 else hosts,
            None if decided < 0 else decided,
            pid,
        )
