"""Which messages are read on the short way, and when the library is left to look for them."""

from __future__ import annotations

import collections
import contextlib
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.rpc.limits import MessageLimits
from scheduler.rpc.receiving import READ_BYTES, QuickReceiver

REQUEST = {"method": "ping", "args": {}, "_msg_id": "7", "_reply_q": "reply_1", "_timeout": 60}
ENVELOPE = {"oslo.version": "2.0", "oslo.message": json.dumps(REQUEST)}
WHOLE = {**REQUEST, "_unique_id": "u1", "_context_user_id": "joe", "_context_roles": ["member"]}


def enveloped(request: Any) -> dict[str, Any]:
    return {**ENVELOPE, "oslo.message": json.dumps(request)}


class Bus:
    """A connection that brings what is given; an error, or nothing within the time, at its end."""

    def __init__(self, brings: list[Any], end: Exception) -> None:
        self.connected = True
        self.transport = SimpleNamespace(_quick_recv=lambda count: b"x" * count)
        self._brings = brings
        self._end = end

    def drain_events(self, timeout: float) -> None:
        assert timeout > 0
        if not self._brings:
            raise self._end
        self._brings.pop(0)()

    def collect(self) -> None:
        self.connected = False


class Consumer:
    """The library's, which notes what is left to it."""

    rabbit_stream_fanout = False

    def __init__(self, left: list[Any]) -> None:
        self.left = left

    def _callback(self, message: Any) -> None:
        self.left.append(message)


class Side:
    """A receiver in front of a poller."""

    def __init__(self, messages: list[Any] = (), *, end: Exception | None = None) -> None:  # type: ignore[assignment]
        self.left: list[Any] = []
        self.acknowledged: list[int] = []
        self.consumer = Consumer(self.left)
        brings = [lambda each=each: self.consumer._callback(each) for each in messages]
        self.bus = Bus(brings, end or TimeoutError())
        for each in messages:
            each.channel = SimpleNamespace(basic_ack=self.acknowledged.append)
        self.poller: Any = SimpleNamespace(
            incoming=[],
            poll=lambda **_limits: ["the library's"],
            conn=SimpleNamespace(
                connection=SimpleNamespace(
                    channel=SimpleNamespace(connection=self.bus),
                    _new_tags=set(),
                    _connection_lock=contextlib.nullcontext(),
                    _consumers={self.consumer: 1},
                )
            ),
            msg_id_cache=Cache(),
            message_cls=lambda *arguments: arguments[1:7],
            _shutdown=threading.Event(),
            _obsolete_reply_queues=None,
            _message_operations_handler=None,
        )
        QuickReceiver(self.poller, MessageLimits(1000, 10)).install()


class Cache:
    def __init__(self) -> None:
        self.prev_msgids: collections.deque[Any] = collections.deque()

    def add(self, unique_id: Any) -> None:
        self.prev_msgids.append(unique_id)


def a_message(
    body: Any, number: int = 1, content_type: str = "application/json", **headers: Any
) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    properties = {"content_type": content_type, "content_encoding": "utf-8"}
    if headers:
        properties["application_headers"] = headers
    return SimpleNamespace(body=raw, delivery_tag=number, properties=properties)


def decoded(message: Any) -> Any:
    """*message* as the library's channel hands it over."""
    message.body = message.body.decode()
    return message


@pytest.mark.parametrize("handed_over", [decoded, lambda message: message], ids=["text", "bytes"])
def test_a_request_is_acknowledged_and_taken_apart(handed_over):
    side = Side([handed_over(a_message(enveloped(WHOLE), 5))])
    (request,) = side.poller.poll(batch_size=1, batch_timeout=None)
    assert request == (
        {"user_id": "joe", "roles": ["member"], "client_timeout": 60},
        {"method": "ping", "args": {}},
        "u1",
        "7",
        "reply_1",
        60,
    )
    assert side.acknowledged == [5]
    assert not side.left


def test_a_message_without_identifiers_is_a_request_too():
    side = Side([a_message(enveloped({"method": "ping"}))])
    (request,) = side.poller.poll()
    assert request == ({"client_timeout": None}, {"method": "ping"}, None, None, None, None)


@pytest.mark.parametrize(
    "message",
    [
        a_message(b"{not json"),
        a_message(b'{"oslo.version": "2.0", "oslo.message": "\xff"}'),
        a_message(REQUEST),
        a_message([]),
        a_message({**ENVELOPE, "more": 1}),
        a_message({**ENVELOPE, "oslo.version": "2.1"}),
        a_message({**ENVELOPE, "oslo.message": 7}),
        a_message({**ENVELOPE, "oslo.message": "[" * 100_000}),
        a_message(enveloped([1])),
        a_message(ENVELOPE, content_type="application/x-python"),
        a_message(ENVELOPE, compression="application/x-gzip"),
        a_message(enveloped({"method": "x" * 1000})),
        a_message(enveloped({"method": "ping", "args": {"arg": json.loads("[" * 9 + "]" * 9)}})),
        decoded(a_message(enveloped({"method": "ping", "args": {"a": [[[[[[[[[]]]]]]]]]}}))),
    ],
    ids=str,
)
def test_what_is_unusual_is_left_to_the_library(message):
    side = Side([message, a_message(ENVELOPE, 2)])
    assert len(side.poller.poll()) == 1
    assert side.left == [message]
    assert side.acknowledged == [2]


def test_many_lists_are_not_deep_ones():
    side = Side([a_message(enveloped({"method": "ping", "args": {"arg": [[]] * 20}}))])
    assert len(side.poller.poll()) == 1
    assert not side.left


def test_what_came_before_is_left_to_the_library():
    twice = [a_message(enveloped(WHOLE), number) for number in (1, 2)]
    side = Side(twice)
    side.poller.poll()
    assert side.poller.poll() == ["the library's"]
    assert side.left == twice[1:]


def test_a_request_that_cannot_be_acknowledged_is_not_worked_on():
    message = a_message(ENVELOPE)
    side = Side([message])

    def fail(_tag: int) -> None:
        raise OSError("gone")

    message.channel.basic_ack = fail
    assert side.poller.poll() == ["the library's"]
    assert not side.poller.incoming


@pytest.mark.parametrize(
    ("condition", "is_connected"),
    [
        ({"end": TimeoutError()}, True),
        ({"end": OSError("gone")}, False),
        ({"end": ValueError("a frame of another kind")}, False),
    ],
)
def test_when_nothing_comes_the_library_looks(condition, is_connected):
    side = Side(**condition)
    assert side.poller.poll(batch_size=1) == ["the library's"]
    assert side.bus.connected is is_connected


@pytest.mark.parametrize("event", ["closed", "subscribing", "stopping"])
def test_the_library_is_left_alone_while_it_connects_and_ends(event):
    side = Side([a_message(ENVELOPE)])
    if event == "closed":
        side.poller.conn.connection.channel.connection = None
    elif event == "subscribing":
        side.poller.conn.connection._new_tags.add(1)
    else:
        side.poller._shutdown.set()
    assert side.poller.poll() == ["the library's"]


def test_as_much_is_read_as_has_come():
    side = Side([a_message(ENVELOPE)])
    side.poller.poll()
    assert len(side.bus.transport._quick_recv(7)) == READ_BYTES
