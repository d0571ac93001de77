"""SIGHUP, without the launchers' own way with it.

Theirs puts the default action back while they are busy with one signal, so that the next one ends
the process, or ends the worker to fork a new one (reference page service, section 3).  Here a
signal is a byte in a pipe, whoever waits for it takes one reload after the other, and signals that
come during one are worth one more together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_READ_BYTES: Final = 4096


class Hangups:
    """The hang-ups of one process; a fork begins with none."""

    def __init__(self) -> None:
        self._pid = 0
        self._sending_end: socket.socket | None = None
        self._receiving_end: socket.socket | None = None
        self._is_closed = self._is_watched = False

    def take_over(self) -> None:
        """Make SIGHUP of this process count here, where this thread may say so.

        In a process of native threads the launcher keeps the signal, and calls :meth:`note`.
        """
        self._open()
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGHUP, self._caught)

    def note(self) -> None:
        """One hang-up has come."""
        self._open()
        if self._sending_end is not None:
            with contextlib.suppress(BlockingIOError):  # full: enough reloads are waiting
                os.write(self._sending_end.fileno(), b"\0")

    def watch(self, reload: Callable[[], None]) -> None:
        """Call *reload* after hang-ups, in a thread (or greenlet) of its own, to the end."""
        self._open()
        self._is_watched = True
        if self._is_closed:  # told to end before it had begun
            return
        thread = threading.Thread(target=self._watch, args=(reload,), daemon=True, name="reload")
        thread.start()

    def close(self) -> None:
        """Hang-ups are worth nothing any more."""
        self._is_closed = True
        if self._pid == os.getpid() and self._sending_end is not None:
            self._sending_end.close()  # whoever watches sees the end
            self._sending_end = None
            if not self._is_watched and self._receiving_end is not None:
                self._receiving_end.close()

    def _open(self) -> None:
        if self._pid == os.getpid() or self._is_closed:
            return
        self._pid = os.getpid()
        self._receiving_end, self._sending_end = socket.socketpair()
        os.set_blocking(self._sending_end.fileno(), False)

    def _caught(self, _number: int, _frame: Any) -> None:
        if _is_in_foreground():  # its terminal is gone
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self.note()

    def _watch(self, reload: Callable[[], None]) -> None:
        if self._receiving_end is None:
            return
        with self._receiving_end as receiving_end:
            while receiving_end.recv(_READ_BYTES):
                try:
                    reload()
                except Exception:
                    LOG.exception("The configuration could not be read again")


def _is_in_foreground() -> bool:
    """Whether this process belongs to what runs in the foreground of a terminal."""
    try:
        return os.isatty(sys.stdout.fileno()) and os.getpgrp() == os.tcgetpgrp(sys.stdout.fileno())
    except (OSError, ValueError):  # no such descriptor, or no terminal
        return False
