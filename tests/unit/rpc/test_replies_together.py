"""Which answers leave with one write, and what becomes of them should that fail."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler import concurrency
from scheduler.rpc import reply_channel
from scheduler.rpc.frames import Outbox
from tests.unit.rpc.replying import RESULT, Bus, Side, sizes
from tests.waiting import wait_until


def test_answers_that_are_ready_together_leave_together(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = Side()
    monkeypatch.setattr(side.channel, "_look_soon", lambda: None)  # which sends, too
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


def test_an_answer_on_a_channel_that_was_opened_anew_is_not_taken_for_another(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    side, bus = Side(), Bus()

    def open_anew() -> None:
        monkeypatch.setattr(concurrency, "let_others_catch_up", lambda: None)
        side.channel._give_up(side.connection)
        side.connection.channel = SimpleNamespace(connection=bus)
        for each in ("third", "fourth"):
            side.message().reply(each)
        bus.channels[-1]._confirm_selected = False

    monkeypatch.setattr(side.channel, "_look_soon", lambda: None)
    side.message().reply("first")
    monkeypatch.setattr(concurrency, "let_others_catch_up", open_anew)
    side.message().reply("second")
    side.channel.close()
    assert sorted(each[2] for each in events) == ["first", "fourth", "second", "third"]


def test_nobody_meets_a_channel_that_is_half_open(monkeypatch: pytest.MonkeyPatch) -> None:
    side, seen = Side(), []

    def outbox(bus: Bus) -> Outbox:
        seen.append(side.channel._connection)
        return Outbox(bus)

    monkeypatch.setattr(reply_channel, "Outbox", outbox)
    side.message().reply(RESULT)
    assert seen == [None]


def test_answers_are_sent_where_nobody_can_look_for_confirmations(
    events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    side = Side()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            side.message().reply("first")
    side.message().reply("second")
    assert sizes(side) == [1, 1]
    side.bus.told = [("basic_ack", (2, True))]
    wait_until(lambda: not side.channel._unconfirmed)
    assert not events


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
