"""Calls under way while answers come in at any moment."""

from __future__ import annotations

import json
from collections import deque
from types import SimpleNamespace

import amqp
import pytest

from benchmarks.caller import Caller
from tests.builders import a_request

pytestmark = pytest.mark.slow

CONCURRENCY = 8


class Broker:
    """Stands for the library's connection: answers come in while the next call is sent, too."""

    def __init__(self, **_where: object) -> None:
        self.asked: deque[str] = deque()
        self.sent = 0
        self.under_way: list[int] = []
        self.answered = lambda _message: None

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def channel(self) -> Broker:
        return self

    def queue_declare(self, _name: str, **_how: object) -> None:
        pass

    def basic_consume(self, _queue: str, callback: object, **_how: object) -> None:
        self.answered = callback

    def basic_publish(self, message: amqp.Message, **_where: object) -> None:
        self.asked.append(json.loads(json.loads(message.body)["oslo.message"])["_msg_id"])
        self.sent += 1
        if self.sent % 3 == 0:
            self._answer()

    def drain_events(self, timeout: float) -> None:
        assert timeout > 0
        self.under_way.append(len(self.asked))
        self._answer()

    def _answer(self) -> None:
        reply = {"_msg_id": self.asked.popleft(), "ending": True, "result": [1], "failure": None}
        self.answered(SimpleNamespace(body=json.dumps({"oslo.message": json.dumps(reply)})))


def test_as_many_calls_are_under_way_as_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    monkeypatch.setattr(amqp, "Connection", lambda **where: broker)
    ticks = iter(range(10_000))
    monkeypatch.setattr("benchmarks.caller.time.perf_counter", lambda: float(next(ticks)))
    caller = Caller("rabbit://guest:guest@localhost:5672/", [a_request()])
    latencies, _elapsed = caller.closed_loop(CONCURRENCY, 500)
    assert len(latencies) == broker.sent > 100
    assert set(broker.under_way[:-CONCURRENCY]) == {CONCURRENCY}
    assert broker.under_way[-CONCURRENCY:] == list(range(CONCURRENCY, 0, -1))
