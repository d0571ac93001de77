"""Exchanges and queues on a broker: those expected, and those left over by dead processes.

An expected one (reference page rpc, section 9) is declared passively first, with the arguments of
the RPC library.  Only one that is there is then declared as expected: the broker finds it equal,
and does nothing, or refuses with the argument that differs.  Nothing is made or changed.

Reply and fanout queues of processes that are gone expire by themselves
(``rabbit_transient_queues_ttl``), unless they are from old releases or were declared without that.
Those are found through the management API of RabbitMQ, where there is one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import amqp
import kombu
import requests
from oslo_config import cfg

from scheduler.broker.nodes import Node

PORT: Final = 15672
TLS_PORT: Final = 15671

PRESENT: Final = "present"
MISSING: Final = "missing"
DIFFERENT: Final = "different"
FORBIDDEN: Final = "forbidden"
UNCONSUMED: Final = "no consumer"
LEFTOVER: Final = "leftover"
NOT_EMPTY: Final = "leftover, not empty"

#: As the RPC library names them: by 32 hexadecimal digits, or by machine, process and number.
OF_ONE_PROCESS: Final = re.compile(r"(reply_|.+_fanout_)([0-9a-f]{32}|[^:]+:[^:]+:\d+)", re.ASCII)
_DIFFERENCE: Final = re.compile(
    r"inequivalent arg '(?P<name>[^']+)'.*?: received (?P<want>.+?) but current is (?P<is>.+)"
)


@dataclass(frozen=True)
class Declared:
    """An exchange or queue (*kind*) as it is declared; *more* is its type or its arguments."""

    kind: str
    name: str
    durable: bool
    auto_delete: bool
    more: dict[str, Any]


def declared(conf: cfg.ConfigOpts) -> list[Declared]:
    """The exchanges and queues that stay, as the RPC library declares them."""
    options, topic = conf.oslo_messaging_rabbit, conf.scheduler_topic
    durable = bool(options.amqp_durable_queues or options.rabbit_quorum_queue)
    transient = bool(options.rabbit_transient_quorum_queue or options.rabbit_stream_fanout)
    auto_delete = bool(options.amqp_auto_delete)
    arguments = {"arguments": _queue_arguments(options)}
    return [
        Declared("exchange", conf.control_exchange, durable, auto_delete, {"type": "topic"}),
        Declared("exchange", f"{topic}_fanout", transient, True, {"type": "fanout"}),
        Declared("queue", topic, durable, auto_delete, arguments),
        Declared("queue", f"{topic}.{conf.host}", durable, auto_delete, arguments),
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


@dataclass(frozen=True)
class Sight:
    """State of one exchange or queue; the counts are a queue's."""

    kind: str
    name: str
    state: str
    messages: int | None = None
    consumers: int | None = None
    detail: str = ""


def look_at(connection: kombu.Connection, wanted: Declared) -> Sight:
    """The state of an exchange or queue."""
    state, detail, found = _look(connection, wanted)
    if wanted.kind == "exchange" or found is None:
        return Sight(wanted.kind, wanted.name, state, detail=detail)
    if state == PRESENT and not found.consumer_count:
        state, detail = UNCONSUMED, "nobody answers; is the service running?"
    counts = (found.message_count, found.consumer_count)
    return Sight(wanted.kind, wanted.name, state, *counts, detail)


def _look(connection: kombu.Connection, wanted: Declared) -> tuple[str, str, Any]:
    """State, detail, and the answer to a passive declaration."""
    found = None
    for passive in (True, False):
        try:
            with _channel(connection) as channel:
                declare = getattr(channel, f"{wanted.kind}_declare")
                flags = {"durable": wanted.durable, "auto_delete": wanted.auto_delete}
                answer = declare(wanted.name, passive=passive, **flags, **wanted.more)
                found = answer if passive else found
        except amqp.NotFound:
            return MISSING, "made when the service is first started", None
        except amqp.PreconditionFailed as error:
            return DIFFERENT, _difference(str(error.reply_text)), found
        except amqp.AccessRefused as error:
            return FORBIDDEN, error.reply_text, found
    return PRESENT, "", found


@contextlib.contextmanager
def _channel(connection: kombu.Connection) -> Iterator[Any]:
    """A channel of its own: the broker closes it with each refusal."""
    channel = connection.channel()
    try:
        yield channel
    finally:
        if channel.is_open:
            channel.close()


def _difference(text: str) -> str:
    """The argument that differs, in the words of the options."""
    match = _DIFFERENCE.search(text)
    if match is None:
        return text
    return f"{match['name']} is {match['is']}, the configuration says {match['want']}"


def unconsumed(listed: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the queues that belong to one process and, as *listed*, have no consumer."""
    unused = [each["name"] for each in listed if not each.get("consumers")]
    return [name for name in unused if OF_ONE_PROCESS.fullmatch(name)]


def leftovers(connection: kombu.Connection, names: Iterable[str]) -> list[Sight]:
    """Those of the queues *names* that are left over by now, with their true counts.

    The management API counts every few seconds only: a queue that was just made seems unused.
    """
    found = []
    for name in names:
        # One that is gone, or not ours to see, is passed over.
        with contextlib.suppress(amqp.ChannelError), _channel(connection) as channel:
            now = channel.queue_declare(name, passive=True)
            if now.consumer_count:
                continue
            what = (NOT_EMPTY, "its messages have nobody to go to")
            state, detail = what if now.message_count else (LEFTOVER, "can go")
            found.append(Sight("queue", name, state, now.message_count, 0, detail))
    return found


def remove(connection: kombu.Connection, name: str) -> str | None:
    """Delete the queue if it is still unused and empty; else the reason why it is kept."""
    try:
        with _channel(connection) as channel:
            channel.queue_delete(name, if_unused=True, if_empty=True)
    except amqp.NotFound:
        return None  # it expired meanwhile
    except amqp.ChannelError as error:
        return str(error.reply_text)
    return None


class Unavailable(Exception):
    """There is no management API to be had; the text says why."""


class Management:
    """The management API at *url* or its usual port, asked as the user of *node*."""

    def __init__(self, url: str | None, node: Node, timeout_seconds: float) -> None:
        scheme, port = ("https", TLS_PORT) if node.tls else ("http", PORT)
        usual = f"{scheme}://{node.name.rpartition(':')[0]}:{port}"
        self._url = (url or usual).rstrip("/")
        self._vhost = quote(node.vhost, safe="")
        self._timeout_seconds = timeout_seconds
        self._session = requests.Session()
        self._session.auth = (node.user, node.password)
        if isinstance(node.tls, dict) and "ca_certs" in node.tls:
            self._session.verify = node.tls["ca_certs"]

    def queues(self) -> list[dict[str, Any]]:
        """All queues of the virtual host; Unavailable if they cannot be listed."""
        return self._get(f"queues/{self._vhost}")

    def consumers(self) -> dict[str, list[str]]:
        """By queue: who consumes, as ``address:port``."""
        found: dict[str, list[str]] = {}
        for each in self._get(f"consumers/{self._vhost}"):
            details = each.get("channel_details") or {}
            address = f"{details.get('peer_host')}:{details.get('peer_port')}"
            found.setdefault(each["queue"]["name"], []).append(address)
        return found

    def _get(self, path: str) -> list[dict[str, Any]]:
        try:
            answer = self._session.get(f"{self._url}/api/{path}", timeout=self._timeout_seconds)
            answer.raise_for_status()
            listed = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise Unavailable(f"{self._url}: {_cause(error)}") from error
        if not isinstance(listed, list):
            raise Unavailable(f"{self._url}: not the management API of RabbitMQ")
        return listed


def _cause(error: BaseException) -> str:
    """The innermost reason, which is one line."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return str(error).splitlines()[0] if str(error) else type(error).__name__
