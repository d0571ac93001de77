"""An HTTP server on a loopback port of its own, in a thread, for as long as a ``with`` lasts."""

from __future__ import annotations

import http.server
import threading
from typing import Any, Self

ADDRESS = "127.0.0.1"


class LoopbackServer:
    """Lets a *handler* answer every call; the handler finds this object as ``server.owner``."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self._server: Any = http.server.ThreadingHTTPServer((ADDRESS, 0), handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """One call, of which nothing is told on stderr."""

    server: Any

    def answer(self) -> None:
        """Answer the call, whatever its method."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def do_PUT(self) -> None:
        self.answer()

    def do_DELETE(self) -> None:
        self.answer()

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""
