"""What the configuration says of the broker: where it is, and what has to be there.

Reference page rpc, section 9; the arguments are those that the RPC library declares with.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors
from scheduler.rpc import transport

DEFAULT_PORT: Final = 5672
DEFAULT_HOST: Final = "localhost"
DEFAULT_LOGIN: Final = "guest"
RABBIT_SCHEMES: Final = ("rabbit", "kombu")
TLS_VERSIONS: Final = {
    "tlsv1": "PROTOCOL_TLSv1",
    "tlsv1_1": "PROTOCOL_TLSv1_1",
    "tlsv1_2": "PROTOCOL_TLSv1_2",
    "sslv2": "PROTOCOL_SSLv2",
    "sslv3": "PROTOCOL_SSLv3",
    "sslv23": "PROTOCOL_SSLv23",
}
"""What ``ssl_version`` may say, in small letters, and the constant of Python that it means."""


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
        """What people call it."""
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


def of_conf(conf: cfg.ConfigOpts) -> Expected:
    """What *conf* says; raises ConfigurationError for a bus that is no RabbitMQ."""
    if transport.is_in_process(conf):
        reason = "the bus is the one inside a process: there is no broker to look at"
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    url = transport.parsed_url(conf)
    if url.transport not in RABBIT_SCHEMES:
        reason = f"{url.transport}:// is no RabbitMQ, which alone can be looked at"
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    options = conf.oslo_messaging_rabbit
    topic = conf.scheduler_topic
    return Expected(
        nodes=_nodes(url, options),
        exchanges=_exchanges(conf.control_exchange, topic, options),
        queues=_queues(topic, conf.host, options),
    )


def _nodes(url: Any, options: Any) -> list[Node]:
    tls = _tls(options)
    vhost = url.virtual_host or "/"
    method = options.rabbit_login_method
    if not url.hosts:
        default = (DEFAULT_HOST, DEFAULT_PORT, DEFAULT_LOGIN, DEFAULT_LOGIN)
        return [Node(*default, vhost=vhost, tls=tls, login_method=method)]
    return [
        Node(
            host=each.hostname or DEFAULT_HOST,
            port=each.port or DEFAULT_PORT,
            user=each.username or "",
            password=each.password or "",
            vhost=vhost,
            tls=tls,
            login_method=method,
        )
        for each in url.hosts
    ]


def _tls(options: Any) -> Any:
    """The arguments of a TLS connection, as the RPC library chooses them; False for none."""
    if not options.ssl:
        return False
    files = {
        "keyfile": options.ssl_key_file,
        "certfile": options.ssl_cert_file,
        "ca_certs": options.ssl_ca_file,
    }
    arguments: dict[str, Any] = {name: value for name, value in files.items() if value}
    if options.ssl_version:
        version = getattr(ssl, TLS_VERSIONS.get(options.ssl_version.lower(), ""), None)
        if version is None:
            reason = f"{options.ssl_version!r} is no version of TLS that this Python has"
            option = "[oslo_messaging_rabbit] ssl_version"
            raise errors.ConfigurationError(option=option, reason=reason)
        arguments["ssl_version"] = version
    return arguments or True


def _exchanges(name: str, topic: str, options: Any) -> list[Exchange]:
    durable = bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
    transient = bool(options.rabbit_transient_quorum_queue or options.rabbit_stream_fanout)
    return [
        Exchange(name, "topic", durable, bool(options.amqp_auto_delete)),
        Exchange(f"{topic}_fanout", "fanout", transient, auto_delete=True),
    ]


def _queues(topic: str, host: str, options: Any) -> list[Queue]:
    durable = bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
    arguments = _queue_arguments(options)
    return [
        Queue(name, durable, bool(options.amqp_auto_delete), arguments)
        for name in (topic, f"{topic}.{host}")
    ]


def _queue_arguments(options: Any) -> dict[str, Any]:
    """The arguments with which the RPC library declares a queue that stays."""
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
