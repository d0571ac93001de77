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
class Exchange:
    """An exchange as it is declared."""

    name: str
    type: str
    durable: bool
    auto_delete: bool


@dataclass(frozen=True)
class Queue:
    """A queue as it is declared."""

    name: str
    durable: bool
    auto_delete: bool
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """The brokers, and what is to be on them."""

    nodes: list[Node]
    exchanges: list[Exchange]
    queues: list[Queue]


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
        exchanges=_exchanges(conf.control_exchange, conf.scheduler_topic, options),
        queues=_queues(conf.scheduler_topic, conf.host, options),
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


def _exchanges(name: str, topic: str, options: Any) -> list[Exchange]:
    transient = bool(options.rabbit_transient_quorum_queue or options.rabbit_stream_fanout)
    return [
        Exchange(name, "topic", _is_durable(options), bool(options.amqp_auto_delete)),
        Exchange(f"{topic}_fanout", "fanout", transient, auto_delete=True),
    ]


def _queues(topic: str, host: str, options: Any) -> list[Queue]:
    """The queues that stay, with the arguments of the RPC library."""
    arguments: dict[str, Any] = {}
    if options.rabbit_ha_queues:
        arguments = {"x-ha-policy": "all"}
    elif options.rabbit_quorum_queue:
        limits = {
            "x-delivery-limit": options.rabbit_quorum_delivery_limit,
            "x-max-in-memory-length": options.rabbit_quorum_max_memory_length,
            "x-max-in-memory-bytes": options.rabbit_quorum_max_memory_bytes,
        }
        arguments = {"x-queue-type": "quorum", **{k: v for k, v in limits.items() if v}}
    return [
        Queue(name, _is_durable(options), bool(options.amqp_auto_delete), arguments)
        for name in (topic, f"{topic}.{host}")
    ]


def _is_durable(options: Any) -> bool:
    return bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
