"""The time of day, which goes on steadily where the machine's clock jumps.

With a jump all heartbeats would be too old, or reservations over, from one moment to the next.
Which is right, the time before or after it, is up to the database's clock, which all schedulers
of the fleet share.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Less is followed without a question.
JUMP_SECONDS = 2.0
#: Pause after a jump that was not right, or without an answer, until somebody is asked again.
ASKED_AGAIN_SECONDS = 60.0
_ADOPTED = "The clock of this machine was set by %+.0f s, to the time that the database has"
_IGNORED = (
    "The clock of this machine is off by %+.0f s since it was set; decisions go on with the time "
    "as it was, which is that of the database"
)


def is_due(done_at: float, every_seconds: float, now: float) -> bool:
    """True when what was done then is due again; also where the clock was set back since."""
    return not done_at <= now < done_at + every_seconds


class SteadyClock:
    """Seconds since the epoch.

    *ask* gives the time that others have, None if that cannot be known now; *wall* is the clock
    that may jump, *elapsed* one that does not.
    """

    def __init__(
        self,
        ask: Callable[[], float | None],
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._wall = wall
        self._elapsed = elapsed
        self._offset_seconds = wall() - elapsed()
        self._ask_again_at = float("-inf")

    def __call__(self) -> float:
        """The time."""
        return self._elapsed() + self._offset_seconds

    def check(self) -> None:
        """Look whether the machine's clock has jumped, and take over its time if it is right."""
        jump_seconds = self._wall() - self()
        if abs(jump_seconds) < JUMP_SECONDS:
            self._offset_seconds += jump_seconds
        elif self._elapsed() >= self._ask_again_at:
            self._judge(jump_seconds)

    def _judge(self, jump_seconds: float) -> None:
        self._ask_again_at = self._elapsed() + ASKED_AGAIN_SECONDS
        right = self._ask()
        if right is None:
            return
        of_database = right - self()
        is_right = abs(of_database - jump_seconds) < abs(of_database)
        if is_right:
            self._offset_seconds += jump_seconds
            self._ask_again_at = float("-inf")
        LOG.warning(_ADOPTED if is_right else _IGNORED, jump_seconds)
