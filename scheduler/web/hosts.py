"""By which names a daemon may be asked over HTTP.

A page of somebody else can have its own name resolve to this machine's address, and then read in
the visitor's browser whatever is served here (DNS rebinding).  The browser says which name it
asked for, and an address cannot be rebound, so only names that are known are answered.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

OPTION: Final = "[metrics_endpoint] allowed_hosts"
ANY: Final = "*"
LOCALHOST: Final = "localhost"


class KnownNames:
    """Addresses, ``localhost``, this machine's name and *more*; with ``*`` among them any name."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        wanted = [_plain(each) for each in more]
        self._is_any = ANY in wanted
        self._names = {LOCALHOST, _plain(socket.gethostname()), *wanted}

    def knows(self, header: str | None) -> bool:
        """Whether who sent *header*, ``Host``, may be answered; no browser leaves it out."""
        if self._is_any or header is None:
            return True
        name = _plain(_without_port(header))
        return name in self._names or _is_address(name)


def _plain(name: str) -> str:
    return name.strip().rstrip(".").lower()


def _without_port(header: str) -> str:
    """The name or address in a ``Host``."""
    header = header.strip()
    if header.startswith("["):
        inside, _, after = header[1:].partition("]")
        return "" if after.strip(":0123456789") else inside
    return header.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
