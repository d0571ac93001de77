"""Reply and fanout queues of processes that are gone.

The broker lets them expire by itself (``rabbit_transient_queues_ttl``), unless they are from old
releases or were declared without that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import amqp
import kombu

from scheduler.broker.management import ListedQueue

#: As the RPC library names them: by 32 hexadecimal digits, or by machine, process and number.
OF_ONE_PROCESS: Final = re.compile(r"(reply_|.+_fanout_)([0-9a-f]{32}|[^:]+:[^:]+:\d+)", re.ASCII)


def candidates(queues: Iterable[ListedQueue]) -> list[ListedQueue]:
    """Those of *queues* that belong to one process and, as listed, are consumed by nobody."""
    return [each for each in queues if OF_ONE_PROCESS.fullmatch(each.name) and not each.consumers]


def among(connection: kombu.Connection, queues: Iterable[ListedQueue]) -> list[ListedQueue]:
    """Those of *queues* that are left over by now, with their true counts.

    The management API counts every few seconds only: a queue that was just made seems unused.
    """
    asked = (_as_of_now(connection, each.name) for each in candidates(queues))
    return [each for each in asked if each is not None and not each.consumers]


def _as_of_now(connection: kombu.Connection, name: str) -> ListedQueue | None:
    channel = connection.channel()
    try:
        found = channel.queue_declare(name, passive=True)
    except amqp.ChannelError:
        return None  # it is gone, or not ours to see
    finally:
        if channel.is_open:
            channel.close()
    return ListedQueue(name, found.message_count, found.consumer_count)


def remove(connection: kombu.Connection, queue: ListedQueue) -> str | None:
    """Delete *queue* if it is still unused and empty; else the reason why it is kept."""
    channel = connection.channel()
    try:
        channel.queue_delete(queue.name, if_unused=True, if_empty=True)
    except amqp.NotFound:
        return None  # it expired meanwhile
    except amqp.ChannelError as error:
        return str(error.reply_text)
    finally:
        if channel.is_open:
            channel.close()
    return None
