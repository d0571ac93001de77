"""An HTTP server that answers calls in a given order, and remembers what it was asked."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Sequence
from typing import Any, Self

ADDRESS = "127.0.0.1"
Answer = tuple[int, Any] | None
"""Status and JSON body, where None is no body; without all that the connection is cut."""


class ReplayServer:
    """Gives *answers* one after the other; ``calls`` are (method, path, headers, JSON body)."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        self._server = http.server.ThreadingHTTPServer((ADDRESS, 0), _Call)
        self._server.owner = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://{ADDRESS}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Call(http.server.BaseHTTPRequestHandler):
    """One call."""

    def do_GET(self) -> None:
        owner: ReplayServer = self.server.owner  # type: ignore[attr-defined]
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(text) if text else None
        owner.calls.append((self.command, self.path, headers, body))
        given = owner.answers.pop(0)
        if given is None:
            self.close_connection = True
            return
        status, answer = given
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        content = b"" if answer is None else json.dumps(answer).encode()
        if status != http.HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Nothing on stderr."""
