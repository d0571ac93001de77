"""Nobody waits for a notification bus."""

from __future__ import annotations

import threading

import pytest

from scheduler.notifications.notifier import Outbox


def test_in_order_and_all_before_the_end() -> None:
    sent: list[int] = []
    outbox = Outbox(10)
    for number in range(5):
        outbox.put("event", lambda number=number: sent.append(number))
    outbox.close()
    assert sent == [0, 1, 2, 3, 4]


def test_an_error_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[str] = []
    outbox = Outbox(10)
    outbox.put("compute.fails", lambda: [][0])
    outbox.put("compute.works", lambda: sent.append("works"))
    outbox.close()
    assert sent == ["works"]
    assert "compute.fails could not be sent" in caplog.text


def test_a_bus_that_takes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    taken, blocked = threading.Event(), threading.Event()

    def never_done() -> None:
        taken.set()
        blocked.wait()

    outbox = Outbox(2)
    outbox.put("first", never_done)
    assert taken.wait(60)
    for number in range(5):
        outbox.put(f"event{number}", never_done)
    assert outbox.dropped == 3
    assert caplog.text.count("are dropped") == 1, "said once, not for each"
    outbox.close(0.01)
    assert "2 notifications could not be sent in time" in caplog.text
    blocked.set()


def test_it_is_told_how_many_were_dropped(caplog: pytest.LogCaptureFixture) -> None:
    taken, blocked = threading.Event(), threading.Event()
    outbox = Outbox(1)
    outbox.put("first", lambda: (taken.set(), blocked.wait()))
    assert taken.wait(60)
    done = threading.Event()
    outbox.put("second", done.set)
    outbox.put("lost", done.set)
    blocked.set()
    assert done.wait(60)
    outbox.put("third", lambda: None)
    assert "1 notifications were dropped" in caplog.text
    outbox.close()


def test_closing_what_was_never_used() -> None:
    Outbox(1).close()
