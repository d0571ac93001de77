"""What the service manager hears of one worker and of several."""

import math
import os
import socket
from contextlib import nullcontext

import pytest

from scheduler.daemon.watchdog import VARIABLE, Readiness, Watchdog
from scheduler.daemon.worker_table import Heartbeat, Stage, WorkerTable
from scheduler.rpc.in_flight import InFlightRequests


class Told(Readiness):
    """Keeps what is told, on behalf of a service manager that listens."""

    def __init__(self, watchdog_seconds):
        super().__init__({})
        self.watchdog_seconds = watchdog_seconds
        self.lines = []

    def tell(self, *assignments):
        self.lines += assignments


class Scene:
    """One worker with a watchdog, others only in its table."""

    def __init__(self, workers=1, watchdog_seconds=40.0):
        self.now = 1000.0
        self.told = Told(watchdog_seconds)
        self.table = WorkerTable(workers, clock=lambda: self.now)
        self.in_flight = InFlightRequests(clock=lambda: self.now)
        self.is_listening = True
        self.watchdog = Watchdog(self.told, self.table, self.in_flight, lambda: self.is_listening)
        self.watchdog.start()

    def other(self, stage, age_seconds=0.0):
        """The second worker gives a heartbeat."""
        self.table._write(1, Heartbeat(stage, self.now - age_seconds))

    def look(self):
        self.told.lines.clear()
        self.watchdog.look()
        return self.told.lines


def test_ready_comes_when_the_last_worker_serves():
    scene = Scene(workers=2)
    scene.other(Stage.STARTING)
    scene.watchdog.enter(Stage.SERVING)
    assert "READY=1" not in scene.told.lines

    scene = Scene(workers=2)
    scene.other(Stage.SERVING)
    scene.watchdog.enter(Stage.SERVING)
    assert scene.told.lines[-2:] == ["READY=1", "STATUS=2 workers"]


@pytest.mark.parametrize(
    ("other", "is_over"), [(Stage.SERVING, True), (Stage.RELOADING, False), (Stage.STARTING, True)]
)
def test_a_reload_is_over_when_nobody_reloads(other, is_over):
    scene = Scene(workers=2)
    scene.other(Stage.SERVING)
    scene.watchdog.enter(Stage.SERVING)
    scene.told.lines.clear()

    scene.watchdog.enter(Stage.RELOADING)
    told, began = scene.told.lines[:2]
    assert told == "RELOADING=1"
    assert int(began.removeprefix("MONOTONIC_USEC=")) > 0
    scene.other(other)
    scene.watchdog.enter(Stage.SERVING)

    assert ("READY=1" in scene.told.lines) is is_over


@pytest.mark.parametrize(
    ("age_seconds", "is_fed"), [(0.0, True), (20.0, True), (20.1, False), (math.inf, False)]
)
def test_every_worker_counts(age_seconds, is_fed):
    scene = Scene(workers=2)
    scene.other(Stage.SERVING, age_seconds)
    assert ("WATCHDOG=1" in scene.look()) is is_fed


def test_nobody_is_fed_who_did_not_ask():
    assert Scene(watchdog_seconds=None).look() == ["STATUS=0 of 1 worker serving"]


@pytest.mark.parametrize(
    ("is_listening", "illness"),
    [
        (False, "nothing listens to the message bus any more"),
        (True, "a request has not moved for 41 s"),
    ],
)
def test_a_worker_that_is_ill_starves_the_watchdog(caplog, is_listening, illness):
    scene = Scene()
    scene.is_listening = is_listening
    assert "WATCHDOG=1" in scene.look()  # it is only starting
    scene.watchdog.enter(Stage.SERVING)
    with scene.in_flight.request("select_destinations") if is_listening else nullcontext():
        scene.now += 41
        for _ in range(2):
            assert "WATCHDOG=1" not in scene.look()
    assert caplog.text.count(f"This worker is stuck: {illness}") == 1
    assert ("WATCHDOG=1" in scene.look()) is is_listening


# --- the line to the service manager


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        yield made


def environ_for(listener, **more):
    return {VARIABLE: listener.getsockname(), **more}


def test_the_libraries_do_not_see_the_service_manager(listener, monkeypatch):
    monkeypatch.setenv(VARIABLE, listener.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    readiness = Readiness()
    assert not {VARIABLE, "WATCHDOG_USEC"} & os.environ.keys()
    assert readiness.is_awaited


def test_an_abstract_address():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind("")  # the kernel chooses an abstract one
        name = made.getsockname()[1:].decode()
        Readiness({VARIABLE: f"@{name}"}).tell("READY=1")
        assert made.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "5000000"}, 5.0),
        ({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": str(os.getpid())}, 5.0),
        ({"WATCHDOG_USEC": "5000000", "WATCHDOG_PID": "1"}, None),
    ],
)
def test_the_watchdog_is_the_process_s_own(listener, more, seconds):
    assert Readiness(environ_for(listener, **more)).watchdog_seconds == seconds
    alone = Readiness(more)
    alone.tell("READY=1")
    assert (alone.is_awaited, alone.watchdog_seconds) == (False, None)


def test_a_service_manager_that_is_gone_is_told_of_once(listener, caplog):
    readiness = Readiness(environ_for(listener))
    listener.close()
    readiness.tell("READY=1")
    readiness.tell("WATCHDOG=1")
    assert len([one for one in caplog.records if "does not take messages" in one.message]) == 1


def test_an_address_where_nobody_listens(tmp_path, caplog):
    assert not Readiness({VARIABLE: str(tmp_path / "nobody")}).is_awaited
    assert f"{VARIABLE} = {tmp_path}" in caplog.text
