"""A TCP proxy whose delay can be changed while connections are open."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Self

from tests.servers.private import LOOPBACK

_CHUNK_BYTES = 65536


class Proxy:
    """Passes on to *port* what comes to its own, of *address*.

    What clients send waits for ``delay_seconds``.
    """

    def __init__(self, port: int, address: str = LOOPBACK) -> None:
        self.delay_seconds = 0.0
        #: Whether whatever is sent is lost on the way.
        self.is_silent = False
        self._target = port
        self._listening = socket.create_server((address, 0))
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._listening.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Cut every connection that is open."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listening.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection((LOOPBACK, self._target))
            except OSError:
                client.close()
                continue
            for ends in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_delayed: bool) -> None:
        self._open.add(source)
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                if is_delayed and self.delay_seconds:
                    time.sleep(self.delay_seconds)
                if not self.is_silent:
                    sink.sendall(data)
        self._open.discard(source)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
