"""Exchanges and queues on a broker: those expected, and those left over by dead processes.

An expected one is declared passively first.  Only one that is there is then declared as expected:
the broker finds it equal, and does nothing, or refuses with the argument that differs.  Nothing is
made or changed.

Reply and fanout queues of processes that are gone expire by themselves
(``rabbit_transient_queues_ttl``), unless they are from old releases or were declared without that.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import amqp
import kombu

from scheduler.broker.expected import Declared
from scheduler.broker.management import ListedQueue

PRESENT: Final = "present"
MISSING: Final = "missing"
DIFFERENT: Final = "different"
FORBIDDEN: Final = "forbidden"
UNCONSUMED: Final = "no consumer"

#: As the RPC library names them: by 32 hexadecimal digits, or by machine, process and number.
OF_ONE_PROCESS: Final = re.compile(r"(reply_|.+_fanout_)([0-9a-f]{32}|[^:]+:[^:]+:\d+)", re.ASCII)
_DIFFERENCE: Final = re.compile(
    r"inequivalent arg '(?P<name>[^']+)'.*?: received (?P<want>.+?) but current is (?P<is>.+)"
)


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


def unconsumed(queues: Iterable[ListedQueue]) -> list[ListedQueue]:
    """Those of *queues* that belong to one process and, as listed, have no consumer."""
    return [each for each in queues if OF_ONE_PROCESS.fullmatch(each.name) and not each.consumers]


def leftovers(connection: kombu.Connection, queues: Iterable[ListedQueue]) -> list[ListedQueue]:
    """Those of *queues* that are left over by now, with their true counts.

    The management API counts every few seconds only: a queue that was just made seems unused.
    """
    found = []
    for listed in unconsumed(queues):
        # One that is gone, or not ours to see, is passed over.
        with contextlib.suppress(amqp.ChannelError), _channel(connection) as channel:
            now = channel.queue_declare(listed.name, passive=True)
            if not now.consumer_count:
                found.append(ListedQueue(listed.name, now.message_count, now.consumer_count))
    return found


def remove(connection: kombu.Connection, queue: ListedQueue) -> str | None:
    """Delete *queue* if it is still unused and empty; else the reason why it is kept."""
    try:
        with _channel(connection) as channel:
            channel.queue_delete(queue.name, if_unused=True, if_empty=True)
    except amqp.NotFound:
        return None  # it expired meanwhile
    except amqp.ChannelError as error:
        return str(error.reply_text)
    return None
