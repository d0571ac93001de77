"""An attestation server on HTTPS, as TrustedFilter asks it."""

from __future__ import annotations

import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

from tests.servers.loopback_http import ADDRESS, LoopbackServer, QuietHandler
from tests.servers.programs import OPENSSL, find


class AttestationServer(LoopbackServer):
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
        super().__init__(_Poll)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)


class _Poll(QuietHandler):
    def answer(self) -> None:
        owner: AttestationServer = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.polls.append({"path": self.path, "headers": headers, "body": body})
        text = owner.answer if isinstance(owner.answer, str) else json.dumps(owner.answer)
        self.send_response(owner.status)
        self.end_headers()
        self.wfile.write(text.encode())


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
