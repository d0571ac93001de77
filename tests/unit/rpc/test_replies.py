"""Which way an answer takes, on connections of the library in this and that condition."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage

from scheduler.afterwards import Afterwards
from scheduler.rpc.replies import QuicklyAnswered

RESULT = [[{"host": "cmp1"}]]
SHORT, LONG = "short", "long"


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

    def reply(message: Any, reply: Any = None, failure: Any = None) -> None:
        found.append((LONG, message.reply_q, failure or reply))

    monkeypatch.setattr(AMQPIncomingMessage, "reply", reply)
    return found


def a_message(channel: Any, *, msg_id: str | None = "7", compression: str | None = None) -> Any:
    connection = SimpleNamespace(
        channel=channel,
        kombu_compression=compression,
        direct_mandatory_flag=True,
        _connection_lock=threading.Lock(),
    )
    afterwards = Afterwards()
    listener = SimpleNamespace(driver=SimpleNamespace(_connection_pool=Pool(connection)))
    queues = SimpleNamespace(reply_q_valid=lambda _queue, _id: True)
    message = QuicklyAnswered(
        afterwards, listener, {}, {}, "unique", msg_id, "reply_q", None, queues, None
    )
    return message, afterwards, listener.driver._connection_pool


@pytest.mark.parametrize(
    ("condition", "given", "way"),
    [
        ({}, {}, SHORT),
        ({"confirms": False}, {}, LONG),
        ({"error": OSError("gone")}, {}, LONG),
        ({}, {"compression": "gzip"}, LONG),
        ({}, {"msg_id": None}, LONG),
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
    else:
        assert (LONG, "reply_q", RESULT) in events


def test_failures_go_the_long_way_and_odd_results_are_made_primitive(events: list[Any]) -> None:
    channel = Channel(confirms=True, error=None, events=events)
    message, _afterwards, _pool = a_message(channel)
    message.reply(failure="an error")
    message.reply({"addresses": {1}})
    assert events[0] == (LONG, "reply_q", "an error")
    assert json.loads(events[1][2]["oslo.message"])["result"] == {"addresses": [1]}
