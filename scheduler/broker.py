"""Brokers as the configuration has them, and what is on them compared with what is expected.

Exchanges and queues (reference page rpc, section 9) are declared passively first, with the
arguments of the RPC library.  Only one that is there is then declared as expected: the broker finds
it equal, and does nothing, or refuses with the argument that differs.  Nothing is made or changed.
"""

import contextlib
import functools
import os
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import amqp
import kombu
import oslo_messaging as messaging
from oslo_config import cfg
from oslo_utils import netutils

from scheduler import errors, exit_codes
from scheduler.conf import mistakes
from scheduler.rpc import transport
from scheduler.rpc.connection import Transport
from scheduler.threads import in_thread

DEFAULT: Final = messaging.TransportHost("localhost", 5672, "guest", "guest")
"""The broker of a transport URL without hosts."""
RABBIT_SCHEMES: Final = ("rabbit", "kombu")
TLS_VERSIONS: Final = ("TLSv1", "TLSv1_1", "TLSv1_2", "SSLv2", "SSLv3", "SSLv23")
"""Values of ``ssl_version``, in any case, as Python's constants spell them."""
TLS_FILES: Final = {
    "ssl_key_file": "keyfile",
    "ssl_cert_file": "certfile",
    "ssl_ca_file": "ca_certs",
}
PRESENT: Final = "present"
MISSING: Final = "missing"
DIFFERENT: Final = "different"
FORBIDDEN: Final = "forbidden"
UNCONSUMED: Final = "no consumer"

#: Longest wait for the brokers before a look at a queue.
LOOK_SECONDS: Final = 2
#: By exit status the state of a broker that cannot be used, and advice.
_TROUBLES: Final = {
    exit_codes.BROKER_UNREACHABLE: (
        "unreachable",
        "is it running, and is this its address ([DEFAULT] transport_url)?",
    ),
    exit_codes.BROKER_TLS: (
        "TLS failed",
        "see ssl, ssl_ca_file and the like in [oslo_messaging_rabbit]",
    ),
    exit_codes.BROKER_LOGIN: ("login refused", "see user and password in [DEFAULT] transport_url"),
    exit_codes.BROKER_VHOST: (
        "virtual host refused",
        "does it exist, and has the user permissions there (rabbitmqctl list_vhosts, "
        "list_permissions)?",
    ),
}


def from_conf(conf: cfg.ConfigOpts, timeout_seconds: float) -> list[kombu.Connection]:
    """Connections, not open yet, to the brokers of *conf*.

    Raises ConfigurationError for a bus that is no RabbitMQ.
    """
    url = transport.parsed_url(conf)
    reason = None
    if transport.is_in_process(conf):
        reason = "the bus is the one inside a process: there is no broker to look at"
    elif url.transport not in RABBIT_SCHEMES:
        reason = f"{url.transport}:// is no RabbitMQ, which alone can be looked at"
    if reason is not None:
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    found = tls(conf.oslo_messaging_rabbit)
    return [
        kombu.Connection(
            hostname=each.hostname or DEFAULT.hostname,
            port=each.port or DEFAULT.port,
            userid=each.username or "",
            password=each.password or "",
            virtual_host=url.virtual_host or "/",
            transport=Transport,
            ssl=found,
            login_method=conf.oslo_messaging_rabbit.rabbit_login_method,
            connect_timeout=timeout_seconds,
            transport_options={"client_properties": {"connection_name": "broker check"}},
        )
        for each in url.hosts or [DEFAULT]
    ]


def tls(options: Any) -> Any:
    """The arguments of a TLS connection, as the RPC library chooses them; False for none.

    Raises ConfigurationError for a file that cannot be read and a version that is not known.
    """
    if not options.ssl:
        return False
    arguments: dict[str, Any] = {}
    for name, argument in TLS_FILES.items():
        path = options[name]
        if path and not os.access(path, os.R_OK):
            option = f"[oslo_messaging_rabbit] {name}"
            raise errors.ConfigurationError(option=option, reason=f"this user cannot read {path}")
        arguments |= {argument: path} if path else {}
    if options.ssl_version:
        known = {each.lower(): getattr(ssl, f"PROTOCOL_{each}", None) for each in TLS_VERSIONS}
        version = known.get(options.ssl_version.lower())
        if version is None:
            reason = f"{options.ssl_version!r} is no version of TLS that this Python has"
            option = "[oslo_messaging_rabbit] ssl_version"
            raise errors.ConfigurationError(option=option, reason=reason)
        arguments["ssl_version"] = version
    return arguments or True


class Failure(Exception):
    """A broker that cannot be used: exit status, state, and as text the cause and the advice."""

    def __init__(self, status: int, cause: str) -> None:
        self.status = status
        self.state, advice = _TROUBLES[status]
        if "certificate has expired" in cause:
            advice = "renew it, or see whether this machine's clock is right"
        super().__init__(f"{cause.rstrip('.')}: {advice}")


def name_of(connection: kombu.Connection) -> str:
    return f"{netutils.escape_ipv6(str(connection.hostname))}:{connection.port}"


def connect_all(
    conf: cfg.ConfigOpts, seconds: float
) -> Iterator[tuple[kombu.Connection, Failure | None]]:
    """Connections to the brokers of *conf*, each open until the next one, or why it is not.

    All are tried at once, for *seconds* at most.
    """
    deadline, connections = time.monotonic() + seconds, from_conf(conf, seconds)
    attempts = [in_thread(functools.partial(_open, each)) for each in connections]
    for connection, attempt in zip(connections, attempts, strict=True):
        try:
            attempt.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            yield (
                connection,
                Failure(exit_codes.BROKER_UNREACHABLE, f"no answer within {seconds:g} s"),
            )
        except Failure as failure:
            yield connection, failure
        else:
            with connection:
                yield connection, None


def _open(connection: kombu.Connection) -> None:
    """Open *connection*; Failure when that cannot be done."""
    try:
        connection.ensure_connection(
            max_retries=1, interval_start=0, interval_step=0, reraise_as_library_errors=False
        )
    except Exception as error:
        connection.release()
        raise _failure(connection, error) from error


def _failure(connection: kombu.Connection, error: Exception) -> Failure:
    """The kind of *error*; any that is no connection's is raised as it is."""
    cause = mistakes.plain(str(error)) or type(error).__name__
    if isinstance(error, ssl.SSLError):
        return Failure(exit_codes.BROKER_TLS, cause)
    if isinstance(error, amqp.AccessRefused):
        return Failure(exit_codes.BROKER_LOGIN, f"user {connection.userid!r}: {error.reply_text}")
    if isinstance(error, amqp.NotAllowed):
        return Failure(exit_codes.BROKER_VHOST, error.reply_text)
    if isinstance(error, TimeoutError | ConnectionRefusedError):
        return Failure(exit_codes.BROKER_UNREACHABLE, cause)
    if isinstance(error, ConnectionError) or "closed connection" in cause:
        what = "ended TLS" if connection.ssl else "ended the connection at once; does it want TLS?"
        return Failure(exit_codes.BROKER_TLS, f"{name_of(connection)} {what} ({cause})")
    if isinstance(error, OSError | amqp.AMQPError):
        return Failure(exit_codes.BROKER_UNREACHABLE, cause)
    raise error


def declared(conf: cfg.ConfigOpts) -> list[kombu.Exchange | kombu.Queue]:
    """The exchanges and queues that stay, as the RPC library declares them."""
    options, topic = conf.oslo_messaging_rabbit, conf.scheduler_topic
    durable = bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
    transient = bool(options.rabbit_transient_quorum_queue or options.rabbit_stream_fanout)
    common: dict[str, Any] = {"durable": durable, "auto_delete": bool(options.amqp_auto_delete)}
    arguments, found = _queue_arguments(options), list[kombu.Exchange | kombu.Queue]()
    if options.rabbit_stream_fanout:
        age = options.rabbit_transient_queues_ttl
        stream = {"x-queue-type": "stream"} | ({"x-max-age": f"{age}s"} if age else {})
        found = [kombu.Queue(f"{topic}_fanout", durable=True, queue_arguments=stream)]
    return [
        kombu.Exchange(conf.control_exchange, "topic", **common),
        kombu.Exchange(f"{topic}_fanout", "fanout", durable=transient, auto_delete=True),
        kombu.Queue(topic, queue_arguments=arguments, **common),
        kombu.Queue(f"{topic}.{conf.host}", queue_arguments=arguments, **common),
        *found,
    ]


def _queue_arguments(options: Any) -> dict[str, Any]:
    if options.rabbit_ha_queues:
        return {"x-ha-policy": "all"}
    if not options.rabbit_quorum_queue:
        return {}
    limits = {
        "x-delivery-limit": options.rabbit_quorum_delivery_limit,
        "x-max-in-memory-length": options.rabbit_quorum_max_memory_length,
        "x-max-in-memory-bytes": options.rabbit_quorum_max_memory_bytes,
    }
    return {"x-queue-type": "quorum", **{name: value for name, value in limits.items() if value}}


class Sight(NamedTuple):
    """State of one exchange or queue; the counts are a queue's."""

    kind: str
    name: str
    state: str
    messages: int | None
    consumers: int | None
    detail: str


def look_at(connection: kombu.Connection, wanted: Any) -> Sight:
    """The state of *wanted*, one of those ``declared``, on the broker."""
    state, detail, messages, consumers = PRESENT, "", None, None
    kind, is_queue = type(wanted).__name__.lower(), isinstance(wanted, kombu.Queue)
    # Both counts of a stream are always 0.
    counts = is_queue and wanted.queue_arguments.get("x-queue-type") != "stream"
    try:
        for passive in (True, False):
            with connection.channel() as channel:  # the broker closes it with each refusal
                declare = wanted.queue_declare if is_queue else wanted.declare
                found = declare(passive=passive, channel=channel)
            if passive and counts:
                messages, consumers = found.message_count, found.consumer_count
    except amqp.NotFound:
        state, detail = MISSING, "made when the service is first started"
    except amqp.PreconditionFailed as error:
        state, detail = DIFFERENT, str(error.reply_text)
    except amqp.AccessRefused as error:
        state, detail = FORBIDDEN, error.reply_text
    if state == PRESENT and consumers == 0:
        state, detail = UNCONSUMED, "nobody answers; is the service running?"
    return Sight(kind, wanted.name, state, messages, consumers, detail)


def consumers(conf: cfg.ConfigOpts, name: str) -> int:
    """Number of consumers of a queue; 0 also where there is no queue, or no broker answers."""
    for connection, failure in connect_all(conf, LOOK_SECONDS):
        if failure is None:
            with contextlib.suppress(amqp.NotFound), connection.channel() as channel:
                return int(channel.queue_declare(name, passive=True).consumer_count)
    return 0
