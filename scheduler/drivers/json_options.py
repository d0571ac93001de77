"""Options for third-party filters and weighers from a JSON file that may be edited at any time.

Reference page scheduling, section 12.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: The file is looked at no more often than this.
CHECK_SECONDS = 300


class JsonOptions:
    """What the file at *path* says; nothing without a path.  *clock* gives seconds.

    While the file cannot be read, what it said before counts.
    """

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = path
        self._clock = clock
        self._checked_at: float | None = None
        self._modified_at: float | None = None
        self._data: Any = {}

    @property
    def known(self) -> Any:
        """What the file said when it was last looked at; it is not looked at now."""
        return self._data

    def current(self) -> Any:
        """What the file says, as of at most five minutes ago; empty if it is no JSON."""
        if self.path and self._is_due():
            LOG.debug("Start to check scheduler configuration file at: %s", self.path)
            self._check()
        return self._data

    def _is_due(self) -> bool:
        now = self._clock()
        # A clock that was set back must not put off the next check.
        if self._checked_at is not None and 0 <= now - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = now
        return True

    def _check(self) -> None:
        try:
            modified_at = os.stat(self.path).st_mtime
            if self._modified_at is not None and modified_at <= self._modified_at:
                return
            LOG.debug("Loading scheduler options file %s", self.path)
            with open(self.path, "rb") as file:
                text = file.read()
        except OSError:
            LOG.exception("Could not stat scheduler options file %s", self.path)
            return
        self._modified_at = modified_at
        self._data = _decoded(text)


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text) or {}
    except (ValueError, RecursionError):
        LOG.exception("Could not decode scheduler options")
        return {}
