"""Putting the fast path into a server, if the libraries have the private parts that it uses."""

import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc.connection import Deliveries
from scheduler.rpc.messages import MessageLimits

LOG = logging.getLogger(__name__)

TESTED: Final = {"oslo.messaging": (18, 3), "kombu": (5, 7), "amqp": (5, 4)}
"""The highest versions that the tests of the bus were run with: major and minor."""

PARTS: Final = """
oslo_messaging._drivers.base:PollStyleListenerAdapter _poll_style_listener
oslo_messaging._drivers.amqpdriver:AMQPListener _shutdown _obsolete_reply_queues
    _message_operations_handler msg_id_cache incoming conn driver
oslo_messaging._drivers.amqpdriver:RpcAMQPListener message_cls
oslo_messaging._drivers.amqpdriver:AMQPIncomingMessage orig_msg_id reply_q _obsolete_reply_queues
oslo_messaging._drivers.amqpdriver:ObsoleteReplyQueuesCache reply_q_valid add
oslo_messaging._drivers.amqpdriver:AMQPDriverBase _connection_pool
    missing_destination_retry_timeout
oslo_messaging._drivers.amqp:_MsgIdCache prev_msgids add
oslo_messaging._drivers.impl_rabbit:Connection _connection_lock _new_tags channel
    kombu_compression direct_mandatory_flag ensure_connection
oslo_messaging._drivers.pool:Pool get put
oslo_messaging._drivers.common:serialize_remote_exception
oslo_messaging.server:MessageHandlingServer _executor_cls
"""
"""Classes and functions, each with the attributes that its source must name."""


def missing(
    version: Callable[[str], str] = importlib.metadata.version, parts: str = PARTS
) -> list[str]:
    """List what is in the way of the fast path: private names, or versions above the tested."""
    found = [
        f"{name} {version(name)} is above the tested {'.'.join(map(str, tested))}"
        for name, tested in TESTED.items()
        if tuple(map(int, version(name).split(".")[:2])) > tested
    ]
    for line in parts.replace("\n    ", " ").strip().splitlines():
        path, *names = line.split()
        found += _missing_of(path, names)
    return found


def _missing_of(path: str, names: list[str]) -> Iterator[str]:
    try:
        module, _colon, name = path.partition(":")
        part = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        yield f"{path} is not there"
        return
    bases = [each for each in inspect.getmro(part) if each is not object] if names else []
    known = "".join(inspect.getsource(each) for each in bases)
    for each in names:
        if not hasattr(part, each) and f"self.{each} = " not in known:
            yield f"{path}.{each} is not there"


@functools.cache
def is_possible() -> bool:
    """True when the libraries have all parts needed; else a log line says what is missing."""
    found = missing()
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
        # Imported only here: it needs all that the probe looks for.
        traffic = importlib.import_module("scheduler.rpc.fastpath.traffic")
        poller = listener._poll_style_listener
        self.receiver: Any = traffic.Receiver(poller, limits)
        self.replies: Any = traffic.ReplyChannel(poller)
        poller.poll = self.receiver.poll
        if not poller.conn.connection.kombu_compression:  # which only the library does
            poller.message_cls = functools.partial(traffic.Request, self.replies)
        deliveries.take = self.receiver.take
