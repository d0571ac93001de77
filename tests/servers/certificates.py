"""A private certificate authority, made for a test run, and the certificate of its servers."""

import datetime
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

NAME = "localhost"
"""The one name in the certificate; 127.0.0.1, where the servers listen, is not in it."""


@dataclass(frozen=True)
class Certificate:
    chain: bytes
    key: bytes

    def write(self, folder: Path, user: str | None = None, **_other: Any) -> tuple[Path, Path]:
        """Put both into files, the key readable for *user* alone; returns their paths."""
        chain, key = folder / "certificate.pem", folder / "key.pem"
        chain.write_bytes(self.chain)
        key.write_bytes(self.key)
        key.chmod(0o600)
        if user is not None:
            shutil.chown(key, user)
        return chain, key


class Authority:
    """Signs the servers' certificate; ``file`` is what their clients are to trust.

    ``stranger`` is the file of an authority that has signed nothing.
    """

    def __init__(self, folder: Path) -> None:
        mine = trustme.CA()
        self.file = folder / "authority.pem"
        mine.cert_pem.write_to_path(str(self.file))
        self.stranger = folder / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(str(self.stranger))
        self._mine = mine
        self.certificate = self.certificate_until(None)

    def certificate_until(self, end: datetime.datetime | None) -> Certificate:
        """A certificate that is valid until *end*, or for long."""
        made = self._mine.issue_cert(NAME, not_after=end)
        chain = b"".join(each.bytes() for each in made.cert_chain_pems)
        return Certificate(chain, made.private_key_pem.bytes())
