"""Answers that wait for their queues, one look after the other."""

from __future__ import annotations

import oslo_messaging
import pytest

from scheduler.rpc import undelivered
from scheduler.rpc.undelivered import Answer, Undelivered

PATIENCE_SECONDS = 60.0


class Bus:
    """Queues that are there or not, and a clock that is told; nothing looks by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Undelivered, "_run", lambda _self: None)
        self.now = 0.0
        self.there: set[str] = set()
        self.sent: list[str] = []
        self.tried: list[str] = []
        self.given_up: list[str] = []
        self.waiting = Undelivered(clock=lambda: self.now)

    def keep(self, *names: str) -> None:
        """Answers to the queue that their first letter names."""
        for name in names:
            answer = Answer(name[0], lambda n=name: self.send(n), lambda n=name: self.lose(n))
            self.waiting.keep(answer, PATIENCE_SECONDS)

    def send(self, name: str) -> None:
        self.tried.append(name)
        if name == "broken":
            raise OSError("the socket")
        if name[0] not in self.there:
            raise oslo_messaging.MessageUndeliverable(None, None, name, None)
        self.sent.append(name)

    def lose(self, name: str) -> None:
        self.given_up.append(name[0])


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    return Bus(monkeypatch)


def test_a_queue_that_comes_back_gets_everything_in_order(bus: Bus) -> None:
    bus.keep("a1", "b1", "a2")
    bus.waiting.look()
    assert (bus.sent, bus.tried) == ([], ["a1", "b1"])  # one try for each queue
    bus.there.add("a")
    bus.waiting.look()
    assert bus.sent == ["a1", "a2"]
    assert (bus.waiting.awaits("a"), bus.waiting.awaits("b")) == (False, True)
    assert bus.waiting.dropped == 0


def test_one_that_does_not_is_given_up_with_all_of_its_answers(bus: Bus) -> None:
    bus.keep("a1")
    bus.now = PATIENCE_SECONDS - 1
    bus.keep("a2", "b1")
    bus.waiting.look()
    assert bus.given_up == []
    bus.now = PATIENCE_SECONDS
    bus.waiting.look()
    assert (bus.given_up, bus.waiting.dropped) == (["a"], 2)
    assert (bus.waiting.awaits("a"), bus.waiting.awaits("b")) == (False, True)


def test_a_server_that_ends_waits_no_longer_than_a_little(bus: Bus) -> None:
    bus.keep("a1")
    bus.waiting.wait()
    for seconds, dropped in ((undelivered.ENDING_SECONDS - 1, 0), (undelivered.ENDING_SECONDS, 1)):
        bus.now = seconds
        bus.waiting.look()
        assert bus.waiting.dropped == dropped


def test_an_answer_that_cannot_be_sent_at_all_holds_up_no_other(bus: Bus) -> None:
    bus.there.add("b")
    bus.keep("broken", "b2")
    bus.waiting.look()
    assert (bus.sent, bus.waiting.dropped) == (["b2"], 1)


def test_only_so_many_are_kept(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undelivered, "MOST_ANSWERS", 4)
    bus.keep("a1", "b1", "b2", "b3", "b4", "a2")
    assert bus.waiting.dropped == 2
    bus.there |= {"a", "b"}
    bus.waiting.look()
    assert bus.sent == ["a1", "a2", "b3", "b4"]


def test_it_looks_by_itself_until_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undelivered, "RETRY_SECONDS", 0.001)
    waiting, tries = Undelivered(), []

    def send() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise oslo_messaging.MessageUndeliverable(None, None, "q", None)

    for _ in range(2):
        tries.clear()
        waiting.keep(Answer("q", send, lambda: None), PATIENCE_SECONDS)
        waiting.wait()
        assert (len(tries), waiting.awaits("q"), waiting.dropped) == (3, False, 0)
