"""What can wait until an answer is on its way: writing down, counting and logging what was decided.

Only greenlets put work off: between sending the answer and doing that work nothing else of the
process runs, so whoever has the answer and asks this worker finds everything done.  For an answer
that leaves with another one, the work is done while it waits for that.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

Work = Callable[[], None]


class Afterwards:
    """The work put off by each request of one worker, in its own thread or greenlet."""

    def __init__(self, *, waits: bool = True) -> None:
        """Unless it *waits*, everything is done at once."""
        self._waits = waits
        self._put_off: contextvars.ContextVar[list[Work] | None] = contextvars.ContextVar("put_off")

    def put_off(self, work: Work) -> None:
        """Do *work* when the answer to the request in hand has been sent; else at once."""
        waiting = self._put_off.get(None)
        if waiting is None:
            work()
        else:
            waiting.append(work)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Within it work may be put off; at its end all of it is done, whatever happened."""
        if not self._waits:
            yield
            return
        self._put_off.set([])
        try:
            yield
        finally:
            self.answered()
            self._put_off.set(None)

    def answered(self) -> None:
        """Do what was put off: the answer has been sent, or is about to leave with another."""
        waiting = self._put_off.get(None)
        while waiting:
            work = waiting.pop(0)
            try:
                work()
            except Exception:
                LOG.exception("What was put off until after the answer failed")
