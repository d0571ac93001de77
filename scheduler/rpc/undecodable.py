"""Counting the messages that nobody can make anything of.

The library drops them before anything of this project sees them, and only its log tells.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

LOGGER: Final = "oslo.messaging._drivers.impl_rabbit"
BEGINNING: Final = "Failed to process message"


class UndecodableCount(logging.Handler):
    """Sees what the library logs, and counts what it says of dropped messages."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count *record* if it tells of a message that was dropped."""
        if str(record.msg).startswith(BEGINNING):
            self.count += 1

    def install(self, ending: contextlib.ExitStack) -> None:
        """Count from now on, until *ending*."""
        logger = logging.getLogger(LOGGER)
        logger.addHandler(self)
        ending.callback(logger.removeHandler, self)
