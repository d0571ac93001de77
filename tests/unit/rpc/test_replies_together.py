"""Which answers leave with one write, and what becomes of them should that fail."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import concurrency
from tests.unit.rpc.replying import Side, sizes
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
