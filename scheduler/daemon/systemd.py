"""What the service manager is told (reference page service, 8.4): ready, reloading, alive.

The libraries announce readiness when they begin to start the service, so the address of the
socket is taken out of their sight; they know nothing of watchdogs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLES = ("WATCHDOG_USEC", "WATCHDOG_PID")
SEND_SECONDS = 1.0
"""How long a message may wait for a service manager that does not read."""


class Readiness:
    """The line to the service manager; without one nothing is said."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """Takes the variables out of *environ*, which is the process's own unless given."""
        environ = os.environ if environ is None else environ
        microseconds, pid = (environ.pop(name, None) for name in WATCHDOG_VARIABLES)
        self._watchdog_seconds: float | None = None
        if microseconds and pid in (None, str(os.getpid())):
            self._watchdog_seconds = int(microseconds) / 1e6
        self._is_failing = False
        address = environ.pop(VARIABLE, None)
        self._socket = None if address is None else _connected(address)

    @property
    def is_awaited(self) -> bool:
        """Whether a service manager listens."""
        return self._socket is not None

    @property
    def watchdog_seconds(self) -> float | None:
        """Within which time it wants to hear that all is well; None if it does not ask."""
        return self._watchdog_seconds if self.is_awaited else None

    def announce(self, *more: str) -> None:
        """Say that requests are served; *more* are further assignments of the protocol."""
        self.tell("READY=1", *more)

    def announce_reload(self) -> None:
        """Say that the configuration is being read again; :meth:`announce` says it is over."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def tell(self, *assignments: str) -> None:
        """Send *assignments* of the protocol in one message."""
        if self._socket is None:
            return
        try:
            self._socket.sendall("\n".join(assignments).encode())
        except OSError as error:
            if not self._is_failing:
                LOG.warning("The service manager does not take messages: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False


def _connected(address: str) -> socket.socket | None:
    """A socket to *address*, where ``@`` is an abstract one; None if nobody listens there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(SEND_SECONDS)
    try:
        made.connect(f"\0{address[1:]}" if address.startswith("@") else address)
    except OSError as error:
        LOG.warning("%s = %s: %s; nothing is told to a service manager", VARIABLE, address, error)
        made.close()
        return None
    return made
