"""Telling the service manager when requests are really served (reference page service, 8.4).

The libraries announce readiness when they begin to start the service, so the address of the
socket is taken out of their sight and put back at the end of the start.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from oslo_service import systemd

VARIABLE = "NOTIFY_SOCKET"


class Readiness:
    """Holds the address of systemd's socket until :meth:`announce`."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """Takes the variable out of *environ*, which is the process's own unless given."""
        self._environ = os.environ if environ is None else environ
        self._address = self._environ.pop(VARIABLE, None)

    def announce(self) -> None:
        """Say READY=1, once; nothing happens when no service manager waits for it."""
        if self._address is None:
            return
        self._environ[VARIABLE] = self._address
        self._address = None
        systemd.notify_once()
