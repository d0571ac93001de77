"""The time of reads: one serves all requests that had arrived when it began; and what they cost.

The time of day goes on steadily where the machine's clock jumps.  With a jump all heartbeats would
be too old, or reservations over, from one moment to the next.  Then the time is that of the
database's clock, which all schedulers of the fleet share.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from oslo_log import log as logging

from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER

LOG = logging.getLogger(__name__)

SOON = float("inf")
#: A row written so long before an earlier read was to be found by that one: transactions commit
#: late, and clocks differ, but not by so much.
MISSED_AFTER_SECONDS: Final = 60.0
#: Less is followed without a question.
JUMP_SECONDS = 2.0
#: Pause after a jump that was not right, until somebody is asked again.
ASKED_AGAIN_SECONDS = 60.0
_ADOPTED = "The clock of this machine was set by %+.0f s, to the time that the database has"
_IGNORED = (
    "The clock of this machine is off by %+.0f s; decisions go on with the time that the database "
    "has"
)


class SharedRun:
    """Runs of *work*: every caller gets the result of one that began after its arrival.

    Callers that come while a run is under way which began too early for them wait for the next
    one, and share it.  An error of a run is raised in every caller that shared it; a run that
    failed serves nobody who comes later.  Before a run *gather* lets others come, who share it, if
    somebody has waited during the last one: a caller alone saves 0.17 ms.  *clock* never goes back.
    """

    def __init__(
        self,
        work: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        gather: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._gather = gather
        self._clock = clock
        self._changed = threading.Condition()
        self._begun = 0
        self._finished = 0
        self._begun_at = NEVER
        self._has_waiters = False
        #: When the latest run began that has finished without an error.
        self.good_since = NEVER
        self._last_error: BaseException | None = None

    def __call__(self, arrived_at: float | None = None) -> None:
        """Return once a run has finished that began after *arrived_at*; None: after this call."""
        since = self._clock() if arrived_at is None else arrived_at
        if self.good_since > since:
            return
        with self._changed:
            is_shared = self._begun > self._finished and self._begun_at > since
            mine = self._begun + (not is_shared)
            while self._finished < mine and self._begun > self._finished:
                self._has_waiters = True
                self._changed.wait()
            if self._finished >= mine:
                if self._last_error is not None:
                    raise self._last_error
                return
            self._begun = mine
            self._begun_at = SOON
        self._run(mine)

    def wait(self) -> None:
        """Return when the run that is under way, if there is one, has ended."""
        with self._changed:
            if self._begun > self._finished:
                self._changed.wait()

    def _run(self, number: int) -> None:
        error: BaseException | None = None
        try:
            if self._has_waiters:
                self._has_waiters = False
                self._gather()
            self._begun_at = self._clock()
            self._work()
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._finished = number
                self._last_error = error
                if error is None:
                    self.good_since = self._begun_at
                self._changed.notify_all()


@dataclass(slots=True)
class ReadCost:
    """One read: everything (*full*) or what changed.  *rows* are compute nodes and instances.

    *repairs* counts those that were found late, by a full read or a look back.
    """

    full: bool = False
    seconds: float = 0.0
    rows: int = 0
    repairs: int = 0
    failed: bool = False

    def add(self, row: Any, known_updated_at: float | None, missed_before: float) -> None:
        """Count a *row*; until now it was known as updated then (None: it was unknown).

        What was written before *missed_before* should have been found by an earlier read.
        """
        self.rows += 1
        updated_at = columns.seconds(row.updated_at)
        written_at = columns.seconds(row.created_at) if row.updated_at is None else updated_at
        if written_at < missed_before and known_updated_at not in (updated_at, written_at):
            self.repairs += 1


Listener = Callable[[ReadCost], None]
"""Notified after each read, by the thread that has read; must be quick, and raise nothing."""


def is_due(done_at: float, every_seconds: float, now: float) -> bool:
    """True when what was done then is due again; also where the clock was set back since."""
    return not done_at <= now < done_at + every_seconds


@dataclass
class SteadyClock:
    """Seconds since the epoch.

    *ask* gives the time that others have, None if that cannot be known now; *wall* is the clock
    that may jump, *elapsed* one that does not.
    """

    ask: Callable[[], float | None]
    wall: Callable[[], float] = time.time
    elapsed: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._offset_seconds = self.wall() - self.elapsed()
        self._ask_again_at = float("-inf")
        self._was_told = False

    def __call__(self) -> float:
        return self.elapsed() + self._offset_seconds

    def check(self) -> None:
        """Follow the machine's clock; at first, and where it has jumped, take the time of *ask*."""
        jump_seconds = self.wall() - self()
        if self._was_told and abs(jump_seconds) < JUMP_SECONDS:
            self._offset_seconds += jump_seconds
            return
        if self.elapsed() < self._ask_again_at:
            return
        began, right = self(), self.ask()
        if right is None or self() - began >= JUMP_SECONDS:
            return  # this process may have been stopped since the answer was given
        self._was_told, step_seconds = True, right - self()
        self._offset_seconds += step_seconds
        off_seconds = self.wall() - right
        if abs(off_seconds) >= JUMP_SECONDS:
            LOG.warning(_IGNORED, off_seconds)
            self._ask_again_at = self.elapsed() + ASKED_AGAIN_SECONDS
        elif abs(step_seconds) >= JUMP_SECONDS:
            LOG.warning(_ADOPTED, step_seconds)
