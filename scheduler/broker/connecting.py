"""Connecting to a broker, with a name for each way in which that fails."""

from __future__ import annotations

import enum
import ssl
from typing import Final

import amqp
import kombu

from scheduler.broker.expected import Node
from scheduler.rpc.connection import Transport


class Trouble(enum.Enum):
    """Why a broker cannot be used."""

    UNREACHABLE = "unreachable"
    TLS = "TLS failed"
    LOGIN = "login refused"
    VHOST = "virtual host refused"


ADVICE: Final = {
    Trouble.UNREACHABLE: "is it running, and is this its address ([DEFAULT] transport_url)?",
    Trouble.TLS: "see ssl, ssl_ca_file and the like in [oslo_messaging_rabbit]",
    Trouble.LOGIN: "see user and password in [DEFAULT] transport_url",
    Trouble.VHOST: "does it exist, and has the user permissions there (rabbitmqctl list_vhosts, "
    "list_permissions)?",
}


class Failure(Exception):
    """A broker that cannot be used: *trouble*, and in its text the cause and what to look at."""

    def __init__(self, trouble: Trouble, cause: str) -> None:
        super().__init__(f"{cause}: {ADVICE[trouble]}")
        self.trouble = trouble


def connect(node: Node, timeout_seconds: float) -> kombu.Connection:
    """A connection that is open; Failure when it cannot be had.  The caller closes it."""
    connection = kombu.Connection(
        hostname=node.host,
        port=node.port,
        userid=node.user,
        password=node.password,
        virtual_host=node.vhost,
        transport=Transport,
        ssl=node.tls,
        login_method=node.login_method,
        connect_timeout=timeout_seconds,
        transport_options={"client_properties": {"connection_name": "broker check"}},
    )
    try:
        connection.ensure_connection(
            max_retries=1, interval_start=0, interval_step=0, reraise_as_library_errors=False
        )
    except Exception as error:
        connection.release()
        raise _failure(node, error) from error
    return connection


def _failure(node: Node, error: Exception) -> Failure:
    """What *error* means; errors of other kinds than a connection's are raised as they are."""
    cause = str(error).strip() or type(error).__name__
    if isinstance(error, ssl.SSLError):
        return Failure(Trouble.TLS, cause)
    if isinstance(error, amqp.AccessRefused):
        return Failure(Trouble.LOGIN, f"user {node.user!r}: {error.reply_text}")
    if isinstance(error, amqp.NotAllowed):
        return Failure(Trouble.VHOST, error.reply_text)
    if isinstance(error, TimeoutError | ConnectionRefusedError):
        return Failure(Trouble.UNREACHABLE, cause)
    if isinstance(error, ConnectionError) or "closed connection" in cause:
        what = "ended TLS" if node.tls else "ended the connection at once; does it want TLS?"
        return Failure(Trouble.TLS, f"{node.name} {what} ({cause})")
    if isinstance(error, OSError | amqp.AMQPError):
        return Failure(Trouble.UNREACHABLE, cause)
    raise error
