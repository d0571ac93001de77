"""HTTP servers on loopback ports of their own, in threads, for as long as a ``with`` lasts."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.servers.certificates import NAME, Authority

ADDRESS = "127.0.0.1"
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]] | None
"""Status, JSON body, or bytes, and headers; without all the connection is cut."""
#: Instead of an answer, for long: nothing; else begins of one, and what is sent again and again.
SILENCE: Answer = (0, (b"", b""))
DRIPPING: list[Answer] = [
    (0, (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x")),
    (0, (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" ")),
    (0, (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")),
]


class LoopbackServer:
    """Lets a *handler* answer every call; the handler finds this object as ``server.owner``."""

    def __init__(self, handler: type[QuietHandler]) -> None:
        self._server: Any = http.server.ThreadingHTTPServer((ADDRESS, 0), handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.port = int(self._server.server_address[1])
        self.endpoint = f"http://{ADDRESS}:{self.port}"

    def use_tls(self, authority: Authority, folder: Path) -> None:
        """Show a certificate of *authority*, which is written to *folder*."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.certificate.write(folder))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.endpoint = f"https://{NAME}:{self.port}"

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

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def send(
        self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != http.HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


class ReplayServer(LoopbackServer):
    """Gives *answers* one after the other; ``calls`` are (method, path, headers, JSON body)."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, dict[str, str], Any]] = []
        super().__init__(_Replayed)


class _Replayed(QuietHandler):
    def answer(self) -> None:
        owner: ReplayServer = self.server.owner
        text = self.body()
        sent = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(text) if text else None
        owner.calls.append((self.command, self.path, sent, body))
        given = owner.answers.pop(0)
        status, answer, *headers = given or (0, None)
        if status == 0:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self._drip(*answer or ())
            return
        is_raw = isinstance(answer, bytes | None)
        content = answer or b"" if is_raw else json.dumps(answer).encode()
        self.send(status, content, {**dict(*headers), "Content-Type": "application/json"})

    def _drip(self, begin: bytes = b"", *more: bytes) -> None:
        self.wfile.write(begin)
        for each in more * 200:
            time.sleep(0.1)
            self.wfile.write(each)


class AttestationServer(LoopbackServer):
    """Answers every poll with *status* and *answer*, and remembers what it was asked."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.status = 200
        self.answer: Any = {"hosts": []}
        self.polls: list[dict[str, Any]] = []
        self.authority = authority.file
        super().__init__(_Poll)
        self.use_tls(authority, folder)


class _Poll(QuietHandler):
    def answer(self) -> None:
        owner: AttestationServer = self.server.owner
        body = json.loads(self.body())
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.polls.append({"path": self.path, "headers": headers, "body": body})
        text = owner.answer if isinstance(owner.answer, str) else json.dumps(owner.answer)
        self.send(owner.status, text.encode())
