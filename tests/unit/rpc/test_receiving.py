"""Which messages are read on the short way, and when the library is left to look for them."""

from __future__ import annotations

import collections
import contextlib
import json
import struct
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from amqp import spec

from scheduler.rpc.limits import MessageLimits
from scheduler.rpc.receiving import READ_BYTES, QuickReceiver

A_FRAME = struct.pack(">BHI", 3, 1, 0) + b"\xce"
ACKNOWLEDGEMENT = struct.Struct(">BHIHHQBB")
REQUEST = {"method": "ping", "args": {}, "_msg_id": "7", "_reply_q": "reply_1", "_timeout": 60}
ENVELOPE = {"oslo.version": "2.0", "oslo.message": json.dumps(REQUEST)}
WHOLE = {**REQUEST, "_unique_id": "u1", "_context_user_id": "joe", "_context_roles": ["member"]}


def enveloped(request: Any) -> dict[str, Any]:
    return {**ENVELOPE, "oslo.message": json.dumps(request)}


class Bus:
    """A connection that brings what is given, *at_once* so many; then an error.

    What it was told to acknowledge is in ``acknowledged``, one list per write.
    """

    frame_max = 131072

    def __init__(self, brings: list[Any], end: Exception, at_once: int) -> None:
        self.connected = True
        self.bytes_sent = 0
        self.error: Exception | None = None
        self.acknowledged: list[list[int]] = []
        self.transport = SimpleNamespace(
            _quick_recv=lambda count: b"x" * count, write=self._write, _read_buffer=b""
        )
        self._brings = brings
        self._end = end
        self._at_once = at_once

    def drain_events(self, timeout: float) -> None:
        assert timeout > 0
        if not self.transport._read_buffer:
            if not self._brings:
                raise self._end
            self.transport._read_buffer = A_FRAME * min(self._at_once, len(self._brings))
        self.blocking_read()

    def blocking_read(self) -> None:
        self.transport._read_buffer = self.transport._read_buffer[len(A_FRAME) :]
        self._brings.pop(0)()

    def _write(self, frames: bytes) -> None:
        if self.error is not None:
            raise self.error
        size = ACKNOWLEDGEMENT.size
        parts = [frames[start : start + size] for start in range(0, len(frames), size)]
        read = [ACKNOWLEDGEMENT.unpack(part) for part in parts]
        assert all(each[:5] == (1, 3, 13, *spec.Basic.Ack) for each in read)
        assert all(each[6:] == (0, 0xCE) for each in read)
        self.acknowledged.append([each[5] for each in read])

    def collect(self) -> None:
        self.connected = False


class Consumer:
    """The library's, which notes what is left to it."""

    rabbit_stream_fanout = False

    def __init__(self, left: list[Any]) -> None:
        self.left = left

    def _callback(self, message: Any) -> None:
        self.left.append(message)


class Taken(tuple[Any, ...]):
    """What a message is made of."""

    is_redelivered = False


class Side:
    """A receiver in front of a poller."""

    def __init__(
        self,
        messages: Sequence[Any] = (),
        *,
        end: Exception | None = None,
        at_once: int = 1,
        room: int = 9,
    ) -> None:
        self.left: list[Any] = []
        self.consumer = Consumer(self.left)
        brings = [lambda each=each: self.consumer._callback(each) for each in messages]
        self.bus = Bus(brings, end or TimeoutError(), at_once)
        for each in filter(None, messages):
            each.channel = SimpleNamespace(channel_id=3)
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
            message_cls=lambda *arguments: Taken(arguments[1:7]),
            _shutdown=threading.Event(),
            _obsolete_reply_queues=None,
            _message_operations_handler=None,
        )
        QuickReceiver(self.poller, MessageLimits(1000, 10), lambda: room).install()


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
    return SimpleNamespace(
        body=raw, delivery_tag=number, properties=properties, delivery_info={"redelivered": False}
    )


def unlike_others(number: int) -> Any:
    return a_message(enveloped({**REQUEST, "_unique_id": number}), number)


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
    assert side.bus.acknowledged == [[5]]
    assert not side.left


@pytest.mark.parametrize("is_redelivered", [True, False])
def test_what_the_broker_has_sent_before_is_known(is_redelivered):
    message = a_message(enveloped(WHOLE), 5)
    message.delivery_info["redelivered"] = is_redelivered
    (request,) = Side([message]).poller.poll()
    assert request.is_redelivered is is_redelivered


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
    assert side.bus.acknowledged == [[2]]


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


def test_what_comes_twice_together_is_worked_on_once():
    """The library does not know of the first yet, and would take the second."""
    side = Side([a_message(enveloped(WHOLE), number) for number in (1, 2)], at_once=2)
    assert len(side.poller.poll()) == 1
    assert not side.poller.incoming
    assert not side.left
    assert side.bus.acknowledged == [[1, 2]]


@pytest.mark.parametrize(
    ("room", "acknowledged"),
    [(9, [[1, 2, 3, 4]]), (2, [[1, 2], [3, 4]]), (0, [[1], [2], [3], [4]])],
)
def test_requests_that_came_together_are_acknowledged_together(room, acknowledged):
    """As many as there is room for: the others stay with the broker."""
    side = Side([unlike_others(number) for number in (1, 2, 3, 4)], at_once=4, room=room)
    assert [side.poller.poll()[0][2] for _number in range(4)] == [1, 2, 3, 4]
    assert side.bus.acknowledged == acknowledged


def test_among_requests_what_is_unusual_is_left_to_the_library():
    messages = [unlike_others(1), a_message(REQUEST, 2), unlike_others(3)]
    side = Side(messages, at_once=3)
    side.poller.poll()
    assert len(side.poller.incoming) == 1
    assert side.left == messages[1:2]
    assert side.bus.acknowledged == [[1, 3]]


def test_what_came_before_the_connection_broke_is_worked_on():
    side = Side([a_message(ENVELOPE, 1), None], at_once=2)
    assert side.poller.poll() == ["the library's"]
    assert not side.bus.connected
    assert len(side.poller.incoming) == 1
    assert side.bus.acknowledged == [[1]]


def test_requests_that_cannot_be_acknowledged_are_not_worked_on():
    side = Side([unlike_others(1), unlike_others(2)], at_once=2)
    side.bus.error = OSError("gone")
    assert side.poller.poll() == ["the library's"]
    assert not side.poller.incoming
    assert not side.bus.connected


def test_a_request_that_the_library_receives_is_acknowledged_by_itself():
    side = Side()
    acknowledged: list[int] = []
    message = a_message(ENVELOPE, 8)
    message.channel = SimpleNamespace(basic_ack=acknowledged.append)
    side.consumer._callback(message)
    assert acknowledged == [8]
    assert len(side.poller.incoming) == 1


def test_one_that_the_library_cannot_acknowledge_is_not_worked_on():
    def fail(_tag: int) -> None:
        raise OSError("gone")

    side = Side()
    message = a_message(ENVELOPE)
    message.channel = SimpleNamespace(basic_ack=fail)
    side.consumer._callback(message)
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


def test_the_queue_that_all_share_is_subscribed_to_last() -> None:
    side = Side()
    shared, own, fanout = Consumer([]), Consumer([]), Consumer([])
    consumers = side.poller.conn.connection._consumers
    consumers.clear()
    consumers.update({shared: 1, own: 2, fanout: 3})
    QuickReceiver(side.poller, MessageLimits(1000, 10), lambda: 9).install()
    assert list(consumers.items()) == [(own, 2), (fanout, 3), (shared, 1)]
