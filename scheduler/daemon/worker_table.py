"""Shared memory of one daemon: the heartbeats of its workers, and how their starts went.

The master makes a file in memory, and its workers inherit it: one place per worker.  Whoever takes
a place holds a lock on it, which the kernel releases when the process ends, however it ends.  The
worker that replaces one that died finds the place free.
"""

import contextlib
import enum
import fcntl
import itertools
import math
import mmap
import os
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass

_HEARTBEAT = struct.Struct("=qdq")


class Stage(enum.IntEnum):
    NONE = 0
    """There never was one in this place."""
    STARTING = 1
    SERVING = 2
    RELOADING = 3
    STOPPING = 4


@dataclass(frozen=True)
class Heartbeat:
    """A worker's report of itself; times in seconds of the clock that all processes share."""

    stage: int = Stage.NONE
    at: float = -math.inf
    pid: int = 0


class WorkerTable:
    """Places for *workers* workers; *clock* gives seconds that never go back.

    The launchers fork a new worker for each that dies, also when none could ever start (reference
    page service, section 3).  So the table ends the daemon when its first start fails.  A worker
    that replaces one that did start is left to them: whatever is in its way may pass.
    """

    def __init__(self, workers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self.workers = workers
        self.clock = clock
        self.place: int | None = None
        """The place of this process, from 0 on; None if it has none."""
        self._master_pid = os.getpid()
        self._file = os.memfd_create("nova-workers")
        self._started_at = workers * _HEARTBEAT.size
        self._failed_at = self._started_at + 1
        os.ftruncate(self._file, self._failed_at + 1)
        self._memory = mmap.mmap(self._file, self._failed_at + 1)
        for place in range(workers):
            self._write(place, Heartbeat())

    def join(self) -> None:
        """Take a free place for this process; what one that died left there is overwritten."""
        self.place = None  # a fork has its parent's
        for place in range(self.workers):
            with contextlib.suppress(BlockingIOError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                self.place = place
                return

    def beat(self, heartbeat: Heartbeat) -> None:
        """Show *heartbeat* in this process's place; one worker too many has none."""
        if self.place is not None:
            self._write(self.place, heartbeat)

    def heartbeats(self) -> list[Heartbeat]:
        places = self._memory[: self._started_at]
        return list(itertools.starmap(Heartbeat, _HEARTBEAT.iter_unpack(places)))

    def is_complete(self) -> bool:
        return all(each.stage in (Stage.SERVING, Stage.RELOADING) for each in self.heartbeats())

    def stale(self, limit_seconds: float) -> list[Heartbeat]:
        """The latest heartbeats that are older than that, or of workers that were never forked."""
        now = self.clock()
        return [each for each in self.heartbeats() if now - each.at > limit_seconds]

    @property
    def has_failed(self) -> bool:
        return bool(self._memory[self._failed_at])

    def worker_started(self) -> None:
        self._memory[self._started_at] = 1

    def worker_failed(self) -> None:
        """Note a failed start; end the master, by one SIGTERM only, if no worker ever started."""
        if self._memory[self._started_at]:
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, self.workers)
        is_first, self._memory[self._failed_at] = not self.has_failed, 1
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self.workers)
        if is_first and os.getpid() != self._master_pid:
            os.kill(self._master_pid, signal.SIGTERM)

    def _write(self, place: int, heartbeat: Heartbeat) -> None:
        _HEARTBEAT.pack_into(self._memory, place * _HEARTBEAT.size, *astuple(heartbeat))


def is_other_worker(pid: int) -> bool:
    """True when *pid*, by now perhaps of another process, is another one of this group."""
    if pid in (0, os.getpid()):
        return False
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid) == os.getpgid(0)
    return False
