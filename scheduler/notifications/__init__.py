"""Notifications to the bus: the senders, and the payloads of both forms.

``notifier`` chooses the forms, ``payloads`` makes them, ``outbox`` sends in the background.
The manager, builds, metrics, the daemon and the conductor stub may import this package.
"""

from typing import Final

START: Final = "start"
END: Final = "end"
