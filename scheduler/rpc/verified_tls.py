"""TLS to the broker in which the certificate, and the name in it, are always verified.

The libraries verify the name only with ``ssl_ca_file``; nothing at all with an ``ssl_version`` and
without it; and in a URL of several brokers the name of the first one for all.  What is left to
them is decided here anew for each connection.
"""

from __future__ import annotations

import ssl
from typing import Any

import kombu.transport
from kombu.transport import pyamqp

SCHEME = "amqp"
"""How oslo.messaging names the transport of ``rabbit://`` to kombu."""
DEFAULT_HOST = "localhost"


class Transport(pyamqp.Transport):
    """The library's transport; see above."""

    def establish_connection(self) -> Any:
        """Connect to the broker of this connection's present address."""
        client: Any = self.client
        if client.ssl:
            client.ssl = verifying(client.ssl, client.hostname)
        return super().establish_connection()


def verifying(arguments: dict[str, Any] | bool, host: str | None) -> dict[str, Any]:
    """TLS *arguments* with which only a certificate for *host* is accepted.

    A ``server_hostname`` among them counts before *host*.  Without a file of authorities
    (``ca_certs``) the system's are trusted.
    """
    given = arguments if isinstance(arguments, dict) else {}
    name = given.get("server_hostname") or host or DEFAULT_HOST
    return {**given, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}


def install() -> None:
    """Let kombu connect so from now on, for all that names the transport by its scheme."""
    kombu.transport.TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
