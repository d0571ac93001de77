"""A TCP port that leads to a server only while it is open: how a server comes and goes at will."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from tests.servers.private import LOOPBACK

_CHUNK_BYTES = 65536


class Gate:
    """In front of *target_port* of this machine; closed at first: connections are refused."""

    def __init__(self, target_port: int) -> None:
        self._target = (LOOPBACK, target_port)
        # Bound without listening, so that the port is taken and refuses.
        self._socket = socket.socket()
        self._socket.bind((LOOPBACK, 0))
        self.port = int(self._socket.getsockname()[1])

    def open(self) -> None:
        """From now on connections reach the target."""
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Give the port up; connections that were made go on."""
        with contextlib.suppress(OSError):  # it was never opened
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _address = self._socket.accept()
                server = socket.create_connection(self._target)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end is gone
        while data := source.recv(_CHUNK_BYTES):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
