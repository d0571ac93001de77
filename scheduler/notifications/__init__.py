"""Notifications to the bus: the senders, and the payloads of both forms."""

from typing import Final

START: Final = "start"
END: Final = "end"
