"""Repeated work: when the next run is due, what failures do, how it ends."""

import queue
import threading
import time

import pytest

from scheduler.daemon.periodic import RepeatingTask


@pytest.mark.parametrize(
    ("spacing", "jitter", "took", "low", "high"),
    [
        pytest.param(10, 0.0, 0.0, 10, 10, id="exact"),
        pytest.param(0, 0.0, 0.0, 60, 60, id="0 means 60"),
        pytest.param(10, 0.05, 0.0, 10, 10, id="no jitter below 20 seconds"),
        pytest.param(1000, 0.05, 0.0, 1000, 1050, id="up to 5 percent"),
        pytest.param(10, 0.0, 11.0, 0, 0, id="a run longer than the spacing"),
    ],
)
def test_next_run_is_due(spacing, jitter, took, low, high, monkeypatch):
    times = iter([100.0, 100.0 + took])  # however long the machine takes
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    task = RepeatingTask("t", lambda: None, spacing, jitter)
    assert low <= task.run_once() <= high


def test_failures_are_logged_and_do_not_end_it(caplog):
    runs = queue.Queue()

    def fail():
        runs.put(1)
        raise RuntimeError("broken")

    task = RepeatingTask("Driver.run_periodic_tasks", fail, 0.001)
    task.start()
    for _ in range(3):
        runs.get(timeout=60)
    task.stop()

    assert "Error during Driver.run_periodic_tasks" in caplog.text
    assert "RuntimeError: broken" in caplog.text


def test_negative_spacing_never_runs(caplog):
    caplog.set_level("INFO")
    runs = []
    task = RepeatingTask("t", lambda: runs.append(1), -1)

    task.start()
    task.stop()

    assert runs == []
    assert "Skipping periodic task t because its interval is negative" in caplog.text


def test_stop_waits_for_the_run_under_way():
    entered, leave, left = threading.Event(), threading.Event(), threading.Event()

    def run():
        entered.set()
        leave.wait(60)
        left.set()

    task = RepeatingTask("t", run, 3600)
    task.start()
    assert entered.wait(60)
    stopper = threading.Thread(target=task.stop)
    stopper.start()
    leave.set()
    stopper.join(60)

    assert left.is_set()
    assert not stopper.is_alive()
