"""Work deferred until the reply is sent: record, metrics, log line of a decision.

Only greenlets defer work: between sending the reply and that work nothing else of the process
runs, so whoever has the reply and asks this worker finds everything done.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

Work = Callable[[], None]


class DeferredWork:
    """The deferred work of each request of one worker, in its own thread or greenlet."""

    def __init__(self, *, waits: bool = True) -> None:
        """Unless it *waits*, everything is done at once."""
        self._waits = waits
        self._waiting: contextvars.ContextVar[list[Work] | None] = contextvars.ContextVar(
            "deferred"
        )

    def defer(self, work: Work) -> None:
        """Do *work* when the reply to the request in hand has been sent; else at once.

        It runs in the context of now, so that its spans belong to those of the request.
        """
        waiting = self._waiting.get(None)
        if waiting is None:
            work()
        else:
            waiting.append(functools.partial(contextvars.copy_context().run, work))

    @contextlib.contextmanager
    def until_answered(self) -> Iterator[None]:
        """Defer work within it; do all of it at the end, whatever happened."""
        if not self._waits:
            yield
            return
        self._waiting.set([])
        try:
            yield
        finally:
            self.do()
            self._waiting.set(None)

    def do(self) -> None:
        """Do the deferred work."""
        waiting = self._waiting.get(None)
        while waiting:
            work = waiting.pop(0)
            try:
                work()
            except Exception:
                LOG.exception("Deferred work failed")
