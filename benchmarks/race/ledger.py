"""What the callers were promised, as they see it: with claims or without, the same question."""

from __future__ import annotations

import threading
from collections import Counter


class Ledger:
    """Which host each server was promised to; a promise ends before anybody can know of its end."""

    def __init__(self, host_mb: int) -> None:
        self._host_mb = host_mb
        self._lock = threading.Lock()
        self._of_server: dict[str, tuple[str, int]] = {}
        self._promised_mb: Counter[str] = Counter()
        #: How often a host was promised beyond its memory, and by how much at most.
        self.double_bookings = 0
        self.worst_mb = 0

    def promise(self, server: str, host: str, memory_mb: int) -> None:
        """An answer names *host* for *server*."""
        with self._lock:
            self._take(server)
            self._of_server[server] = host, memory_mb
            self._promised_mb[host] += memory_mb
            excess = self._promised_mb[host] - self._host_mb
            if excess > 0:
                self.double_bookings += 1
                self.worst_mb = max(self.worst_mb, excess)

    def release(self, server: str) -> None:
        """The server is about to go, or will not come."""
        with self._lock:
            self._take(server)

    def _take(self, server: str) -> None:
        host, memory_mb = self._of_server.pop(server, ("", 0))
        self._promised_mb[host] -= memory_mb
