"""Which way an answer takes, on connections of the library in this and that condition."""

from __future__ import annotations

import contextlib
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage, ObsoleteReplyQueuesCache

from scheduler.afterwards import Afterwards
from scheduler.rpc.replies import QuicklyAnswered
from scheduler.rpc.undelivered import MISSING, Undelivered

RESULT = [[{"host": "cmp1"}]]
SHORT, LONG, NONE = "short", "long", "none"


class Channel:
    """What is sent and waited for."""

    def __init__(self, *, confirms: bool, error: Exception | None, events: list[Any]) -> None:
        self.connection: Any = object()
        self._confirm_selected = confirms
        self._error = error
        self._events = events

    def send_method(self, _method: Any, _format: str, arguments: Any, message: Any) -> None:
        self._events.append((SHORT, arguments[2], json.loads(message.body)))

    def wait(self, _methods: Any, callback: Any) -> None:
        del callback
        if self._error is not None:
            raise self._error
        self._events.append("confirmed")


class Pool:
    """One connection of the library."""

    def __init__(self, connection: Any) -> None:
        self._connections = [connection]

    def get(self) -> Any:
        return self._connections.pop()

    def put(self, connection: Any) -> None:
        self._connections.append(connection)

    @property
    def is_whole(self) -> bool:
        return len(self._connections) == 1


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What happened, in order."""
    found: list[Any] = []

    def send(message: Any, _connection: Any, reply: Any, failure: Any) -> None:
        found.append((LONG, message.reply_q, failure or reply))

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", send)
    return found


def a_message(channel: Any, *, msg_id: str | None = "7", compression: str | None = None) -> Any:
    connection = SimpleNamespace(
        channel=channel,
        kombu_compression=compression,
        direct_mandatory_flag=True,
        _connection_lock=threading.Lock(),
    )
    afterwards = Afterwards()
    driver = SimpleNamespace(
        _connection_pool=Pool(connection),
        _get_connection=lambda _purpose: contextlib.nullcontext(),
        missing_destination_retry_timeout=60,
    )
    message = QuicklyAnswered(
        afterwards,
        Undelivered(clock=lambda: 0.0),
        SimpleNamespace(driver=driver),
        *({}, {}, "unique", msg_id, "reply_q", None, ObsoleteReplyQueuesCache(), None),
    )
    return message, afterwards, driver._connection_pool


@pytest.mark.parametrize(
    ("condition", "given", "way"),
    [
        ({}, {}, SHORT),
        ({"confirms": False}, {}, LONG),
        ({"error": OSError("gone")}, {}, LONG),
        ({}, {"compression": "gzip"}, LONG),
        ({}, {"msg_id": None}, NONE),
    ],
)
def test_the_way_and_what_was_put_off(
    events: list[Any], condition: dict[str, Any], given: dict[str, Any], way: str
) -> None:
    channel = Channel(**{"confirms": True, "error": None, **condition}, events=events)
    message, afterwards, pool = a_message(channel, **given)

    with afterwards.answering():
        afterwards.put_off(lambda: events.append("put off"))
        message.reply(RESULT)

    assert events.count("put off") == 1
    assert pool.is_whole
    if way == SHORT:
        (_way, queue, envelope), *others = events
        assert others == ["put off", "confirmed"]
        body = json.loads(envelope["oslo.message"])
        assert (queue, body["result"], body["ending"]) == ("reply_q", RESULT, True)
    elif way == LONG:
        assert (LONG, "reply_q", RESULT) in events
    else:
        assert events == ["put off"]


def test_failures_go_the_long_way_and_odd_results_are_made_primitive(events: list[Any]) -> None:
    channel = Channel(confirms=True, error=None, events=events)
    message, _afterwards, _pool = a_message(channel)
    message.reply(failure="an error")
    message.reply({"addresses": {1}})
    assert events[0] == (LONG, "reply_q", "an error")
    assert json.loads(events[1][2]["oslo.message"])["result"] == {"addresses": [1]}


@pytest.mark.parametrize("error", MISSING)
def test_nobody_waits_for_a_queue_that_is_missing(
    events: list[Any], monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def missing(*_arguments: Any) -> None:
        events.append("tried")
        raise error.__new__(error)

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", missing)
    channel = Channel(confirms=True, error=OSError("returned"), events=[])
    message, _afterwards, _pool = a_message(channel)
    message.reply(RESULT)
    message.reply(failure="an error")
    assert message._undelivered.awaits("reply_q")
    assert events == ["tried"]  # for the second, the queue is known to be missing

    monkeypatch.setattr(AMQPIncomingMessage, "_send_reply", lambda *given: events.append(given[2:]))
    message._undelivered.look()
    assert events == ["tried", (RESULT, None), (None, "an error")]
    assert not message._undelivered.awaits("reply_q")


def test_a_queue_that_was_given_up_gets_no_answers(events: list[Any]) -> None:
    channel = Channel(confirms=True, error=None, events=events)
    message, _afterwards, _pool = a_message(channel)
    message._obsolete_reply_queues.add("reply_q", "6")
    message.reply(RESULT)
    assert (events, message._undelivered.dropped) == ([], 1)
