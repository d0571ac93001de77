"""Keeps what was to be told out of the log: the library writes all of what it cannot send there.

Requests of old carry passwords, files and user data.
"""

from __future__ import annotations

import logging
from typing import Any, Final

LOGGER: Final = "oslo_messaging.notify.messaging"
KEPT: Final = ("message_id", "event_type", "publisher_id")


def without_payload(record: logging.LogRecord) -> bool:
    """Leave of a notification in *record* what tells which one it is; the line itself stays."""
    arguments: Any = record.args
    if isinstance(arguments, dict) and isinstance(arguments.get("message"), dict):
        message = arguments["message"]
        record.args = {**arguments, "message": {name: message.get(name) for name in KEPT}}
    return True


def install() -> None:
    """From now on, in this process; may be called again."""
    logging.getLogger(LOGGER).addFilter(without_payload)
