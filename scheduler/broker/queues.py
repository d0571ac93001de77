"""Exchanges and queues on a broker, compared with those expected.

Each (reference page rpc, section 9) is declared passively first, with the arguments of the RPC
library.  Only one that is there is then declared as expected: the broker finds it equal, and does
nothing, or refuses with the argument that differs.  Nothing is made or changed.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import amqp
import kombu
from oslo_config import cfg

PRESENT: Final = "present"
MISSING: Final = "missing"
DIFFERENT: Final = "different"
FORBIDDEN: Final = "forbidden"
UNCONSUMED: Final = "no consumer"

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
    messages: int | None
    consumers: int | None
    detail: str


def look_at(connection: kombu.Connection, wanted: Declared) -> Sight:
    """The state of an exchange or queue."""
    state, detail, messages, consumers = PRESENT, "", None, None
    flags = {"durable": wanted.durable, "auto_delete": wanted.auto_delete}
    try:
        for passive in (True, False):
            with connection.channel() as channel:  # the broker closes it with each refusal
                declare = getattr(channel, f"{wanted.kind}_declare")
                found = declare(wanted.name, passive=passive, **flags, **wanted.more)
            if passive and wanted.kind == "queue":
                messages, consumers = found.message_count, found.consumer_count
    except amqp.NotFound:
        state, detail = MISSING, "made when the service is first started"
    except amqp.PreconditionFailed as error:
        state, detail = DIFFERENT, _difference(str(error.reply_text))
    except amqp.AccessRefused as error:
        state, detail = FORBIDDEN, error.reply_text
    if state == PRESENT and consumers == 0:
        state, detail = UNCONSUMED, "nobody answers; is the service running?"
    return Sight(wanted.kind, wanted.name, state, messages, consumers, detail)


def _difference(text: str) -> str:
    """The argument that differs, in the words of the options."""
    match = _DIFFERENCE.search(text)
    if match is None:
        return text
    return f"{match['name']} is {match['is']}, the configuration says {match['want']}"
