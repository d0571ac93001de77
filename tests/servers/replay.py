"""An HTTP server that answers calls in a given order, and remembers what it was asked."""

from __future__ import annotations

import http.server
import json
from collections.abc import Sequence
from typing import Any

from tests.servers.loopback_http import ADDRESS, LoopbackServer, QuietHandler

Answer = tuple[int, Any] | None
"""Status and JSON body, where None is no body; without all that the connection is cut."""


class ReplayServer(LoopbackServer):
    """Gives *answers* one after the other; ``calls`` are (method, path, headers, JSON body)."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        super().__init__(_Call)

    @property
    def endpoint(self) -> str:
        return f"http://{ADDRESS}:{self.port}"


class _Call(QuietHandler):
    def answer(self) -> None:
        owner: ReplayServer = self.server.owner
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
