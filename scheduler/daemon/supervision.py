"""Ends the daemon when its first start fails, instead of forking failing workers for ever.

The launchers fork a new worker for each that dies, also when none could ever start (reference
page service, section 3).  A worker that replaces one that did start is left to them: whatever
is in its way may pass.
"""

from __future__ import annotations

import mmap
import os
import signal

from scheduler.daemon.worker_table import Board

_STARTED, _FAILED = range(2)


class Supervision:
    """One flag each for "a worker has started" and "the first start failed".

    They are in memory that the master, which makes the object, shares with its workers.
    """

    def __init__(self) -> None:
        self._flags = mmap.mmap(-1, mmap.PAGESIZE)
        self._master_pid = os.getpid()
        self.board = Board(1)
        # A byte that one worker only can read: a second SIGTERM would end the master at once.
        self._right_to_signal, sending_end = os.pipe()
        os.set_blocking(self._right_to_signal, False)
        os.write(sending_end, b"1")
        os.close(sending_end)

    def expect(self, workers: int) -> None:
        """Make room for as many workers; called by the master before it forks them."""
        self.board = Board(workers)

    @property
    def has_failed(self) -> bool:
        """Whether the daemon is to end with a failure."""
        return bool(self._flags[_FAILED])

    def worker_started(self) -> None:
        """Note that this worker serves requests."""
        self._flags[_STARTED] = 1

    def worker_failed(self) -> None:
        """Note that this worker cannot start; tell the master to end if none ever could."""
        if self._flags[_STARTED]:
            return
        self._flags[_FAILED] = 1
        if os.getpid() != self._master_pid and os.read(self._right_to_signal, 1):
            os.kill(self._master_pid, signal.SIGTERM)
