"""Which way an answer takes, and what becomes of those that the broker does not confirm."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage

from scheduler.rpc import reply_channel
from scheduler.rpc.undelivered import MISSING
from tests.unit.rpc.replying import LONG, NONE, RESULT, SHORT, Bus, Side, a_few_sent
from tests.waiting import wait_until


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


@pytest.mark.parametrize("handed_over", [str.encode, str], ids=["bytes", "text"])
def test_an_answer_that_comes_back_is_sent_again(events: list[Any], handed_over: Any) -> None:
    side = Side()
    a_few_sent(side)
    content = handed_over(json.dumps(side.bus.published[1][1]))
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
