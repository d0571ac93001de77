"""Which way an answer takes, and what becomes of those that the broker does not confirm."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from amqp import spec
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage, ObsoleteReplyQueuesCache

from scheduler import concurrency
from scheduler.afterwards import Afterwards
from scheduler.rpc import reply_channel
from scheduler.rpc.replies import QuicklyAnswered
from scheduler.rpc.reply_channel import ReplyChannel
from scheduler.rpc.undelivered import MISSING, Undelivered
from tests.waiting import wait_until

RESULT = [[{"host": "cmp1"}]]
SHORT, LONG, NONE = "short", "long", "none"
HEADER = struct.Struct(">BHI")


class Bus:
    """A connection to the broker: what was written, and what the broker has said."""

    frame_max = 131072

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.error: Exception | None = None
        self.bytes_sent = 0
        self.told: list[tuple[str, Any]] = []
        self.transport = Transport(self)
        self.channels: list[Any] = []
        self.is_collected = False

    @property
    def published(self) -> list[tuple[bytes, dict[str, Any]]]:
        """The arguments and bodies of what was written."""
        frames = [frame for each in self.written for frame in frames_of(each)]
        assert [kind for kind, _payload in frames] == [1, 2, 3] * (len(frames) // 3)
        payloads = [payload for _kind, payload in frames]
        assert all(each[:4] == struct.pack(">HH", *spec.Basic.Publish) for each in payloads[::3])
        return [
            (method[4:], json.loads(body))
            for method, body in zip(payloads[::3], payloads[2::3], strict=True)
        ]

    def channel(self) -> Any:
        made = SimpleNamespace(
            connection=self,
            channel_id=2,
            events=defaultdict(set),
            confirm_select=lambda: None,
            close=lambda: setattr(made, "connection", None),
        )
        self.channels.append(made)
        return made

    def blocking_read(self) -> None:
        buffer = self.transport._read_buffer
        size = HEADER.unpack_from(buffer)[2]
        self.transport._read_buffer = buffer[HEADER.size + size + 1 :]
        self._take()

    def drain_events(self, timeout: float) -> None:
        if not self.told:
            raise TimeoutError(timeout)
        self._take()

    def _take(self) -> None:
        kind, arguments = self.told.pop(0)
        for callback in list(self.channels[-1].events[kind]):
            callback(*arguments)

    def collect(self) -> None:
        self.is_collected = True
        for each in self.channels:
            each.connection = None


def frames_of(written: bytes) -> list[tuple[int, bytes]]:
    """Kind and payload of each frame."""
    found = []
    while written:
        kind, _channel, size = HEADER.unpack_from(written)
        found.append((kind, written[HEADER.size : HEADER.size + size]))
        assert written[HEADER.size + size] == 0xCE
        written = written[HEADER.size + size + 1 :]
    return found


class Transport:
    """What the broker has sent: a frame for each thing it told."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._read_buffer = b""
        self._seen = 0

    def write(self, frames: bytes) -> None:
        if self._bus.error is not None:
            raise self._bus.error
        self._bus.written.append(frames)

    def having_timeout(self, seconds: float) -> Any:
        assert seconds == 0
        return threading.Lock()

    def _quick_recv(self, _count: int) -> bytes:
        if not self._bus.told:
            raise TimeoutError
        return (HEADER.pack(1, 2, 4) + b"told" + b"\xce") * len(self._bus.told)


class Pool:
    """One connection of the library."""

    def __init__(self, connection: Any) -> None:
        self.free = [connection]

    def get(self) -> Any:
        return self.free.pop()

    def put(self, connection: Any) -> None:
        self.free.append(connection)


@pytest.fixture(autouse=True)
def _looks_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_channel, "LOOK_SECONDS", 0.001)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What went the library's way, and what was put off, in order."""
    found: list[Any] = []

    def send(message: Any, _connection: Any, reply: Any, failure: Any) -> None:
        found.append((LONG, message.reply_q, failure or reply))

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", send)
    return found


class Side:
    """A server's channel for answers on a fake bus."""

    def __init__(self, *, bus: Any = None, compression: str | None = None) -> None:
        self.bus = bus or Bus()
        self.connection = SimpleNamespace(
            channel=SimpleNamespace(connection=self.bus),
            kombu_compression=compression,
            direct_mandatory_flag=True,
            _connection_lock=threading.RLock(),
        )
        self.pool = Pool(self.connection)
        self.channel = ReplyChannel(self.pool)
        self.afterwards = Afterwards()
        self.undelivered = Undelivered(clock=lambda: 0.0)
        self.obsolete = ObsoleteReplyQueuesCache()

    def message(self, msg_id: str | None = "7") -> Any:
        driver = SimpleNamespace(
            _get_connection=lambda _purpose: contextlib.nullcontext(),
            missing_destination_retry_timeout=60,
        )
        return QuicklyAnswered(
            self.afterwards,
            self.undelivered,
            self.channel,
            SimpleNamespace(driver=driver),
            *({}, {}, "unique", msg_id, "reply_q", None, self.obsolete, None),
        )


@pytest.mark.parametrize(
    ("side", "msg_id", "error", "way"),
    [
        ({}, "7", None, SHORT),
        ({}, None, None, NONE),
        ({"compression": "gzip"}, "7", None, LONG),
        ({"bus": SimpleNamespace(channel=lambda: 1 / 0)}, "7", None, LONG),
        ({}, "7", OSError("gone"), LONG),
    ],
)
def test_the_way_and_what_was_put_off(
    events: list[Any], side: dict[str, Any], msg_id: str | None, error: Any, way: str
) -> None:
    made = Side(**side)
    made.bus.error = error
    message = made.message(msg_id)

    with made.afterwards.answering():
        made.afterwards.put_off(lambda: events.append("put off"))
        message.reply(RESULT)

    assert events == ([(LONG, "reply_q", RESULT)] if way == LONG else []) + ["put off"]
    if way != SHORT:
        assert made.pool.free == [made.connection]
        return
    ((arguments, envelope),) = made.bus.published
    body = json.loads(envelope["oslo.message"])
    assert (body["result"], body["ending"], body["_msg_id"]) == (RESULT, True, "7")
    assert arguments == b"\0\0\0\x07reply_q\x01"


def sizes(side: Side) -> list[int]:
    """How many answers each write had."""
    return [len(frames_of(each)) // 3 for each in side.bus.written]


def test_answers_that_are_ready_together_leave_together(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Side()
    others = [side.message(str(number)) for number in range(2)]

    def others_catch_up() -> None:
        for each in others:
            each.reply("ready, too")

    monkeypatch.setattr(concurrency, "let_others_catch_up", others_catch_up)
    side.message().reply("alone")
    assert sizes(side) == [1]
    side.message().reply("first")
    assert sizes(side) == [1, 3]
    side.bus.told = [("basic_ack", (4, True))]
    side.channel.close()
    assert not events


def test_those_that_were_to_leave_together_are_all_sent_again(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Side()
    other = side.message("8")

    def break_the_connection() -> None:
        other.reply("ready, too")
        side.bus.error = OSError("gone")

    side.message().reply("alone")
    monkeypatch.setattr(concurrency, "let_others_catch_up", break_the_connection)
    side.message().reply("first")
    wait_until(lambda: sorted(each[2] for each in events) == ["alone", "first", "ready, too"])
    assert side.bus.is_collected


class Ended(BaseException):
    """As a greenlet that is killed."""


@pytest.mark.parametrize("closes", [False, True])
def test_what_somebody_did_not_come_to_send_is_sent(
    events: list[Any], monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    def end() -> None:
        raise Ended

    side = Side()
    if closes:
        monkeypatch.setattr(side.channel, "_look_soon", lambda: None)
    side.message().reply("alone")
    monkeypatch.setattr(concurrency, "let_others_catch_up", end)
    with pytest.raises(Ended):
        side.message().reply("kept")
    assert sizes(side)[0] == 1
    if closes:
        side.bus.told = [("basic_ack", (2, True))]
        side.channel.close()
    wait_until(lambda: sizes(side) == [1, 1])
    assert not events


def test_failures_go_the_long_way_and_odd_results_are_made_primitive(events: list[Any]) -> None:
    side = Side()
    side.message().reply(failure="an error")
    side.message().reply({"addresses": {1}})
    assert events == [(LONG, "reply_q", "an error")]
    ((_arguments, envelope),) = side.bus.published
    assert json.loads(envelope["oslo.message"])["result"] == {"addresses": [1]}


@pytest.mark.parametrize("error", MISSING)
def test_nobody_waits_for_a_queue_that_is_missing(
    events: list[Any], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def missing(*_arguments: Any) -> None:
        events.append("tried")
        raise error.__new__(error)

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", missing)
    side = Side()
    side.bus.error = OSError("returned")
    side.message().reply(RESULT)
    side.message().reply(failure="an error")
    assert side.undelivered.awaits("reply_q")
    assert events == ["tried"]  # for the second, the queue is known to be missing

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", lambda *given: events.append(given[2:]))
    side.undelivered.look()
    assert events == ["tried", (RESULT, None), (None, "an error")]
    assert not side.undelivered.awaits("reply_q")


def test_a_queue_that_was_given_up_gets_no_answers(events: list[Any]) -> None:
    side = Side()
    side.obsolete.add("reply_q", "6")
    side.message().reply(RESULT)
    assert (events, side.bus.published, side.undelivered.dropped) == ([], [], 1)


def a_few_sent(side: Side, number: int = 3) -> None:
    for each in range(number):
        side.message(str(each)).reply(each)


@pytest.mark.parametrize(
    ("told", "again"),
    [
        ([("basic_ack", (1, False)), ("basic_ack", (3, True))], []),
        ([("basic_nack", (2, True)), ("basic_ack", (3, False))], [0, 1]),
        ([("basic_nack", (2, False)), ("basic_ack", (3, True))], [1]),
        ([("basic_ack", (2, True))], [2]),
        ([], [0, 1, 2]),
    ],
    ids=str,
)
def test_what_is_not_confirmed_by_the_end_is_sent_again(
    events: list[Any], told: list[Any], again: list[int]
) -> None:
    side = Side()
    a_few_sent(side)
    side.bus.told = told
    side.channel.close()
    assert sorted(each[2] for each in events) == again
    assert side.pool.free == [side.connection]


def test_an_answer_that_comes_back_is_sent_again(events: list[Any]) -> None:
    side = Side()
    a_few_sent(side)
    content = json.dumps(side.bus.published[1][1]).encode()
    returned = (None, "", "reply_q", SimpleNamespace(body=content))
    side.bus.told = [("basic_return", returned), ("basic_ack", (3, True))]
    wait_until(lambda: events == [(LONG, "reply_q", 1)])
    side.channel.close()
    assert len(events) == 1


def test_a_channel_that_broke_is_noticed_without_another_answer(events: list[Any]) -> None:
    side = Side()
    a_few_sent(side)
    side.bus.channels[-1]._confirm_selected = False  # opened anew after an error
    wait_until(lambda: len(events) == 3)
    assert side.bus.is_collected
    side.connection.channel = SimpleNamespace(connection=Bus())
    a_few_sent(side, 1)
    assert len(side.connection.channel.connection.published) == 1


def test_a_broker_that_is_far_behind_is_waited_for(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_channel, "MOST_UNCONFIRMED", 2)
    side = Side()
    a_few_sent(side)
    assert events == [(LONG, "reply_q", 2)]
    assert len(side.bus.published) == 2
