"""Putting the fast path into a server of the RPC library."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc.deliveries import Deliveries
from scheduler.rpc.fastpath import probe
from scheduler.rpc.message_limits import MessageLimits

LOG = logging.getLogger(__name__)


@functools.cache
def is_possible() -> bool:
    """Whether the libraries have all that is needed; if not, one log line says what is missing."""
    found = probe.missing()
    if found:
        LOG.warning("The fast path of the message bus is off: %s", "; ".join(found))
    return not found


def use_greenlets(server: Any) -> None:
    """Have *server*, not started yet, work in greenlets without a future each, if in greenlets."""
    if concurrency.current() == concurrency.EVENTLET:
        server._executor_cls = concurrency.Greenlets


class FastPath:
    """Receives and answers the requests of one server."""

    def __init__(self, listener: Any, deliveries: Deliveries, limits: MessageLimits) -> None:
        """Take over *listener* of the library, before it is started."""
        # Imported only here: these modules need all that the probe looks for.
        receiving = importlib.import_module("scheduler.rpc.fastpath.receiving")
        replies = importlib.import_module("scheduler.rpc.fastpath.replies")
        poller = listener._poll_style_listener
        self.receiver: Any = receiving.Receiver(poller, limits)
        self.replies: Any = replies.ReplyChannel(poller)
        poller.poll = self.receiver.poll
        if not poller.conn.connection.kombu_compression:  # which only the library does
            poller.message_cls = functools.partial(replies.Request, self.replies)
        deliveries.take = self.receiver.take
