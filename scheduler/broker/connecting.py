"""Connect to a broker; each kind of failure has a name."""

from __future__ import annotations

import enum
import ssl

import amqp
import kombu

from scheduler.broker.expected import Node
from scheduler.rpc.connection import Transport


class Trouble(enum.Enum):
    """Reason why a broker cannot be used, with advice."""

    UNREACHABLE = "unreachable", "is it running, and is this its address ([DEFAULT] transport_url)?"
    TLS = "TLS failed", "see ssl, ssl_ca_file and the like in [oslo_messaging_rabbit]"
    LOGIN = "login refused", "see user and password in [DEFAULT] transport_url"
    VHOST = (
        "virtual host refused",
        "does it exist, and has the user permissions there (rabbitmqctl list_vhosts, "
        "list_permissions)?",
    )


class Failure(Exception):
    """A broker that cannot be used: *trouble*, and as text the cause and the advice."""

    def __init__(self, trouble: Trouble, cause: str) -> None:
        self.state, advice = trouble.value
        super().__init__(f"{cause}: {advice}")
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
    """The kind of *error*; any that is no connection's is raised as it is."""
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
