"""Workers see each other's heartbeats and failures, whoever they are and however they end."""

import multiprocessing
import os
import signal
import subprocess

import pytest

from scheduler.daemon.worker_table import Heartbeat, Stage, WorkerTable, is_other_worker

FULL = Heartbeat(Stage.SERVING, 100.0, 4711)
YOUNG = Heartbeat(Stage.STARTING, 104.0)


def in_a_worker(work):
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    return worker.exitcode


def join_and_beat(table, *, dies=False):
    """Do so in a process of its own."""

    def work():
        table.join()
        table.beat(FULL)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    return in_a_worker(work)


def test_each_process_has_a_place_of_its_own():
    table = WorkerTable(2, clock=lambda: 105.0)
    table.join()
    table.beat(YOUNG)
    assert not table.is_complete()
    assert table.stale(1e9) == [Heartbeat()]  # never forked

    assert join_and_beat(table) == 0
    assert table.heartbeats() == [YOUNG, FULL]
    assert (table.stale(5.0), table.stale(4.0)) == ([], [FULL])
    assert not table.is_complete()
    table.beat(FULL)
    assert table.is_complete()


def test_the_place_of_a_killed_worker_is_taken_by_the_next():
    table = WorkerTable(2)
    table.join()
    for _ in range(2):
        assert join_and_beat(table, dies=True) == -signal.SIGKILL
        assert table.heartbeats() == [Heartbeat(), FULL]


def test_one_worker_too_many_disturbs_nobody():
    table = WorkerTable()
    table.join()
    table.beat(YOUNG)
    assert join_and_beat(table) == 0
    assert table.heartbeats() == [YOUNG]


@pytest.fixture
def terms():
    """The SIGTERMs that this process got."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("events", "has_failed"),
    [
        (["worker_started"], False),
        (["worker_failed"], True),
        (["worker_started", "worker_failed"], False),
        (["worker_failed", "worker_failed"], True),
    ],
)
def test_only_a_failed_first_start_ends_the_daemon(terms, events, has_failed):
    table = WorkerTable()
    for event in events:
        assert in_a_worker(getattr(table, event)) == 0
    assert table.has_failed is has_failed
    assert len(terms) == int(has_failed)  # a second one would kill the master


def test_a_service_without_workers_is_not_signalled(terms):
    table = WorkerTable()
    table.worker_failed()
    assert (table.has_failed, terms) == (True, [])


def test_only_living_processes_of_the_group_are_other_workers():
    with subprocess.Popen(["sleep", "600"]) as child:
        found = [pid for pid in (0, 1, os.getpid(), child.pid) if is_other_worker(pid)]
        child.kill()
    assert found == [child.pid]
    assert not is_other_worker(child.pid)
