"""Whether exchanges and queues are on a broker as they are to be, without making or changing any.

Asked for passively first; only what is there is then declared as expected, which the broker either
finds equal, and does nothing, or refuses with the argument that differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import amqp
import kombu

from scheduler.broker.expected import Exchange, Queue

PRESENT = "present"
MISSING = "missing"
DIFFERENT = "different"
FORBIDDEN = "forbidden"
UNCONSUMED = "no consumer"


@dataclass(frozen=True)
class Sight:
    """What was found of one exchange or queue; the counts are a queue's."""

    kind: str
    name: str
    state: str
    messages: int | None = None
    consumers: int | None = None
    detail: str = ""


def at_exchange(connection: kombu.Connection, wanted: Exchange) -> Sight:
    """Look at an exchange."""

    def declare(channel: Any, passive: bool) -> None:
        channel.exchange_declare(
            wanted.name,
            wanted.type,
            passive=passive,
            durable=wanted.durable,
            auto_delete=wanted.auto_delete,
        )

    state, detail, _found = _look(connection, declare)
    return Sight("exchange", wanted.name, state, detail=detail)


def at_queue(connection: kombu.Connection, wanted: Queue) -> Sight:
    """Look at a queue; one that nobody consumes from is told apart."""

    def declare(channel: Any, passive: bool) -> Any:
        return channel.queue_declare(
            wanted.name,
            passive=passive,
            durable=wanted.durable,
            auto_delete=wanted.auto_delete,
            arguments=wanted.arguments,
        )

    state, detail, found = _look(connection, declare)
    if found is None:
        return Sight("queue", wanted.name, state, detail=detail)
    if state == PRESENT and not found.consumer_count:
        state, detail = UNCONSUMED, "nobody answers; is the service running?"
    return Sight("queue", wanted.name, state, found.message_count, found.consumer_count, detail)


def _look(
    connection: kombu.Connection, declare: Callable[[Any, bool], Any]
) -> tuple[str, str, Any]:
    """State, detail, and what a passive declaration returned."""
    found = None
    for passive in (True, False):
        channel = connection.channel()  # the broker closes it with each refusal
        try:
            answer = declare(channel, passive)
            found = answer if passive else found
        except amqp.NotFound:
            return MISSING, "made when the service is first started", None
        except amqp.PreconditionFailed as error:
            return DIFFERENT, _difference(error), found
        except amqp.AccessRefused as error:
            return FORBIDDEN, error.reply_text, found
        finally:
            if channel.is_open:
                channel.close()
    return PRESENT, "", found


def _difference(error: amqp.PreconditionFailed) -> str:
    """The argument that differs, in the words of the options."""
    match = re.search(
        r"inequivalent arg '(?P<name>[^']+)'.*?: received (?P<want>.+?) but current is (?P<is>.+)",
        error.reply_text,
    )
    if match is None:
        return str(error.reply_text)
    return f"{match['name']} is {match['is']}, the configuration says {match['want']}"
