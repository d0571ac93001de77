"""An attestation server on HTTPS, as TrustedFilter asks it."""

from __future__ import annotations

import http.server
import json
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

from tests.servers.programs import OPENSSL, find

ADDRESS = "127.0.0.1"


class AttestationServer:
    """Answers every poll with *status* and *answer*, and remembers what it was asked.

    Its certificate, for 127.0.0.1, signs itself: ``certificate`` is the authority's file, too.
    """

    def __init__(self, folder: Path) -> None:
        self.status = 200
        self.answer: Any = {"hosts": []}
        self.polls: list[dict[str, Any]] = []
        self.certificate = folder / "certificate.pem"
        key = folder / "key.pem"
        make_certificate(self.certificate, key)
        self._server = http.server.ThreadingHTTPServer((ADDRESS, 0), _Poll)
        self._server.owner = self  # type: ignore[attr-defined]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def port(self) -> str:
        """The port it listens on."""
        return str(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Poll(http.server.BaseHTTPRequestHandler):
    """One poll."""

    def do_POST(self) -> None:
        owner: AttestationServer = self.server.owner  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.polls.append({"path": self.path, "headers": headers, "body": body})
        text = owner.answer if isinstance(owner.answer, str) else json.dumps(owner.answer)
        self.send_response(owner.status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Nothing on stderr."""


def make_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate for 127.0.0.1 that signs itself, and its key."""
    subprocess.run(
        [
            *(str(find(OPENSSL)), "req", "-x509", "-newkey", "ec"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", "/CN=attestation", "-addext", f"subjectAltName=IP:{ADDRESS}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
