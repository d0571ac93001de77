"""One cell among several: its reader, whether it answers, and how it comes back."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from oslo_utils import timeutils

from scheduler.db.database import FAILURES
from scheduler.db.fleet import Cell, FleetChanges, FleetReader

LOG = logging.getLogger(__name__)

#: How long after a failure a cell is tried again in the background.
RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CellHealth:
    """How it is with one cell: for metrics and for operators.

    *failures* counts, since the start, the reads that failed or took too long; *read_at* is when
    the hosts were last read (naive UTC), *error* why they are left out.
    """

    uuid: str
    name: str | None
    is_disabled: bool
    is_left_out: bool
    failures: int
    read_at: datetime.datetime | None
    error: str | None


class Attempt:
    """One question to one cell, asked in a thread of its own."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask
        self._done = threading.Event()
        self._answer: Any = None
        self._error: Exception | None = None
        # A daemon: a server that is silent must not keep this process from ending.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
            self._error = error
        finally:
            self._done.set()

    def result(self, timeout_seconds: float) -> Any:
        """The answer, or what asking raised; TimeoutError if there is neither in time."""
        if not self._done.wait(timeout_seconds):
            raise TimeoutError(f"no answer within {timeout_seconds:.0f} s")
        if self._error is not None:
            raise self._error
        return self._answer

    def finish(self) -> None:
        """Wait for the end, whatever it is."""
        self._done.wait()


class Member:
    """A cell and its *reader*; *cell* is None for the one database of an undivided fleet."""

    def __init__(self, reader: FleetReader, cell: Cell | None, name: str | None = None) -> None:
        self.reader = reader
        self.cell = cell
        self._name = name
        self._must_be_full = False
        self._is_out = False
        self._answers_again = False
        self._is_being_tried = False
        #: A reader is for one thread at a time.
        self._reading = threading.Lock()
        self._closed = threading.Event()
        self._failures = 0
        self._read_at: datetime.datetime | None = None
        self._error: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the next read waits for this cell: it is in, or answers again."""
        return not self._is_out or self._answers_again

    @property
    def health(self) -> CellHealth:
        """How it is now."""
        return CellHealth(
            uuid=self.cell.uuid if self.cell else "",
            name=self._name,
            is_disabled=bool(self.cell and self.cell.disabled),
            is_left_out=self._is_out,
            failures=self._failures,
            read_at=self._read_at,
            error=self._error,
        )

    def become(self, cell: Cell, name: str | None) -> None:
        """Take over what is new in the cell's mapping."""
        self.cell = self.reader.cell = cell
        self._name = name

    def read(self, now: datetime.datetime, *, full: bool) -> Sequence[FleetChanges]:
        """What changed in the cell; everything, if the last read reached nobody."""
        with self._reading:
            full = full or self._must_be_full
            changes = self.reader.read(now, full=full)
            self._must_be_full = False
            self._read_at = now
            return changes

    def forget(self) -> None:
        """Let the next read be a full one."""
        self._must_be_full = True

    def attempt(self, question: Callable[[Member], Any]) -> Attempt:
        """Ask this cell in a thread of its own."""
        return Attempt(lambda: question(self))

    def alone(self, question: Callable[[Member], Any]) -> Any:
        """The answer of the only cell there is: it is asked again and again, never left out."""
        try:
            answer = question(self)
        except FAILURES as error:
            self._failures += 1
            self._error = self._reason(error)
            raise
        self._error = None
        return answer

    def came_back(self) -> None:
        """Count the cell in again, if it was left out."""
        if self._is_out:
            LOG.info("Cell %s (%s) answers again; its hosts are back.", self._uuid, self._name)
            self._is_out = self._answers_again = False
            self._error = None

    def leave_out(self, attempt: Attempt, error: Exception | None) -> None:
        """Leave the cell out after *attempt*, which failed with *error* or (None) is not done.

        It is tried again in the background, beginning when the attempt has ended.
        """
        self._failures += 1
        self._error = "no answer in time" if error is None else self._reason(error)
        if not self._is_out and error is None:
            LOG.warning("Timeout getting computes for cell %s (%s)", self._uuid, self._name)
        elif not self._is_out:
            LOG.warning(
                "Failed to get computes for cell %s (%s): %s", self._uuid, self._name, self._error
            )
        self._is_out, self._answers_again, self._must_be_full = True, False, True
        if not self._is_being_tried:
            self._is_being_tried = True
            threading.Thread(target=self._try_again, args=(attempt,), daemon=True).start()

    def _try_again(self, attempt: Attempt) -> None:
        attempt.finish()
        while not self._closed.wait(RETRY_SECONDS):
            try:
                with self._reading:
                    self.reader.read(timeutils.utcnow(), full=True)
                    self._must_be_full = True  # what was read now reaches nobody
            except FAILURES as error:
                LOG.debug("Cell %s does not answer yet: %s", self._uuid, error)
            except Exception:
                LOG.exception("Cell %s (%s) cannot be read", self._uuid, self._name)
            else:
                self._is_being_tried, self._answers_again = False, True
                return

    def _reason(self, error: Exception) -> str:
        return str(self.reader.database.unusable(error).kwargs["reason"])

    def close(self) -> None:
        """Try no more."""
        self._closed.set()

    @property
    def _uuid(self) -> str | None:
        return self.cell.uuid if self.cell else None
