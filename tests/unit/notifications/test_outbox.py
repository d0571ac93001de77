"""Nobody waits for a notification bus."""

from __future__ import annotations

import threading

import pytest

from scheduler.notifications.notifier import Outbox


def test_in_order_past_an_error_and_all_before_the_end(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[int] = []
    outbox = Outbox(10)
    outbox.put("compute.fails", lambda: [][0])
    for number in range(5):
        outbox.put("event", lambda number=number: sent.append(number))
    outbox.close()
    assert sent == [0, 1, 2, 3, 4]
    assert "compute.fails could not be sent" in caplog.text


def test_a_bus_that_takes_nothing_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    taken, blocked, done = threading.Event(), threading.Event(), threading.Event()
    outbox = Outbox(2)
    outbox.put("first", lambda: (taken.set(), blocked.wait()))
    assert taken.wait(60)
    for number in range(5):
        outbox.put(f"event{number}", done.set)
    assert (outbox.waiting, outbox.dropped) == (2, 3)
    assert caplog.text.count("are dropped") == 1, "said once, not for each"
    blocked.set()
    assert done.wait(60)
    while outbox.waiting:
        done.wait(0.01)
    outbox.put("third", lambda: None)
    assert "3 notifications were dropped" in caplog.text
    outbox.close()


def test_the_end_waits_for_no_bus(caplog: pytest.LogCaptureFixture) -> None:
    Outbox(1).close()
    taken, blocked = threading.Event(), threading.Event()
    outbox = Outbox(2)
    for _ in range(2):
        outbox.put("event", lambda: (taken.set(), blocked.wait()))
        assert taken.wait(60)
    outbox.close(0.01)
    assert "notifications could not be sent in time" in caplog.text
    blocked.set()
