"""Brokers, exchanges and queues as the configuration has them.

Reference page rpc, section 9; the arguments are those that the RPC library declares with.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Final

import oslo_messaging as messaging
from oslo_config import cfg

from scheduler import errors
from scheduler.rpc import transport

DEFAULT: Final = messaging.TransportHost("localhost", 5672, "guest", "guest")
"""The broker of a transport URL without hosts."""
RABBIT_SCHEMES: Final = ("rabbit", "kombu")
TLS_VERSIONS: Final = ("TLSv1", "TLSv1_1", "TLSv1_2", "SSLv2", "SSLv3", "SSLv23")
"""Values of ``ssl_version``, in any case, as Python's constants spell them."""


@dataclass(frozen=True)
class Node:
    """One broker of a cluster, and how to log in there."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str
    tls: dict[str, Any] | bool
    login_method: str

    @property
    def name(self) -> str:
        """Host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Declared:
    """An exchange or queue (*kind*) as it is declared; *more* is its type or its arguments."""

    kind: str
    name: str
    durable: bool
    auto_delete: bool
    more: dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """The brokers, and the exchanges and queues that they should have."""

    nodes: list[Node]
    declared: list[Declared]


def from_conf(conf: cfg.ConfigOpts) -> Expected:
    """The brokers of *conf*; raises ConfigurationError for a bus that is no RabbitMQ."""
    if transport.is_in_process(conf):
        reason = "the bus is the one inside a process: there is no broker to look at"
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    url = transport.parsed_url(conf)
    if url.transport not in RABBIT_SCHEMES:
        reason = f"{url.transport}:// is no RabbitMQ, which alone can be looked at"
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    options = conf.oslo_messaging_rabbit
    tls = _tls(options)
    return Expected(
        nodes=[
            Node(
                host=each.hostname or DEFAULT.hostname,
                port=each.port or DEFAULT.port,
                user=each.username or "",
                password=each.password or "",
                vhost=url.virtual_host or "/",
                tls=tls,
                login_method=options.rabbit_login_method,
            )
            for each in url.hosts or [DEFAULT]
        ],
        declared=_declared(conf.control_exchange, conf.scheduler_topic, conf.host, options),
    )


def _tls(options: Any) -> Any:
    """The arguments of a TLS connection, as the RPC library chooses them; False for none."""
    if not options.ssl:
        return False
    files = (("keyfile", options.ssl_key_file), ("certfile", options.ssl_cert_file))
    arguments = {name: path for name, path in (*files, ("ca_certs", options.ssl_ca_file)) if path}
    if options.ssl_version:
        names = [each for each in TLS_VERSIONS if each.lower() == options.ssl_version.lower()]
        version = getattr(ssl, f"PROTOCOL_{names[0]}", None) if names else None
        if version is None:
            reason = f"{options.ssl_version!r} is no version of TLS that this Python has"
            option = "[oslo_messaging_rabbit] ssl_version"
            raise errors.ConfigurationError(option=option, reason=reason)
        arguments["ssl_version"] = version
    return arguments or True


def _declared(exchange: str, topic: str, host: str, options: Any) -> list[Declared]:
    """The exchanges and queues that stay, as the RPC library declares them."""
    durable = bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
    transient = bool(options.rabbit_transient_quorum_queue or options.rabbit_stream_fanout)
    auto_delete = bool(options.amqp_auto_delete)
    arguments = {"arguments": _queue_arguments(options)}
    return [
        Declared("exchange", exchange, durable, auto_delete, {"type": "topic"}),
        Declared("exchange", f"{topic}_fanout", transient, True, {"type": "fanout"}),
        Declared("queue", topic, durable, auto_delete, arguments),
        Declared("queue", f"{topic}.{host}", durable, auto_delete, arguments),
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
