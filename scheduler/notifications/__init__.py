"""Notifications to the bus: the senders, and the payloads of both forms.

``notifier`` chooses the forms and sends in the background, ``payloads`` makes them.
The manager, builds, metrics, the daemon and the conductor stub may import this package.
"""

from typing import Final

START: Final = "start"
END: Final = "end"
