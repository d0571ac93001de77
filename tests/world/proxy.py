"""A TCP port that leads to a server: it can be closed, delayed, silenced and cut."""

import contextlib
import socket
import threading
import time
from typing import Self

from tests.servers.private import LOOPBACK

_CHUNK_BYTES = 65536


class Proxy:
    """Passes on to *target_port* of this machine what comes to its own port, of *address*.

    What clients send waits for ``delay_seconds``.  Connections are refused until it is opened.
    """

    def __init__(self, target_port: int, address: str = LOOPBACK, *, is_open: bool = True) -> None:
        self.delay_seconds = 0.0
        #: Whether whatever is sent is lost on the way.
        self.is_silent = False
        self._target = (LOOPBACK, target_port)
        self._starts_open = is_open
        # Bound without listening: the port is taken and refuses.
        self._socket = socket.socket()
        self._socket.bind((address, 0))
        self._connected: set[socket.socket] = set()
        self._silenced: set[socket.socket] = set()
        self.port = int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        if self._starts_open:
            self.open()
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):  # it was never opened
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.cut()

    def open(self) -> None:
        """From now on connections reach the target."""
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for each in list(self._connected):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        """Nothing comes through the connections that are open, no end either; new ones work."""
        self._silenced |= self._connected

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _address = self._socket.accept()
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_delayed: bool) -> None:
        self._connected.add(source)
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                if is_delayed and self.delay_seconds:
                    time.sleep(self.delay_seconds)
                if not self.is_silent and source not in self._silenced:
                    sink.sendall(data)
        self._connected.discard(source)
        for each in () if source in self._silenced else (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
