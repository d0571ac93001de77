"""The service manager hears what is true, and the libraries do not hear of the service manager."""

from __future__ import annotations

import os
import pathlib
import socket
from collections.abc import Iterator

import pytest

from scheduler.daemon.watchdog import VARIABLE, Readiness


@pytest.fixture
def listener(tmp_path: pathlib.Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        yield made


def environ_for(listener: socket.socket, **more: str) -> dict[str, str]:
    return {VARIABLE: listener.getsockname(), **more}


def test_the_libraries_do_not_see_the_service_manager(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, listener.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "1000000")
    readiness = Readiness()
    assert not {VARIABLE, "WATCHDOG_USEC"} & os.environ.keys()
    assert readiness.is_awaited


def test_what_is_told_arrives_in_one_message(listener: socket.socket) -> None:
    Readiness(environ_for(listener)).announce("STATUS=1 worker")
    assert listener.recv(100) == b"READY=1\nSTATUS=1 worker"
    with pytest.raises(BlockingIOError):
        listener.recv(100)


def test_a_reload_says_when_it_began(listener: socket.socket) -> None:
    Readiness(environ_for(listener)).announce_reload()
    first, second = listener.recv(100).decode().splitlines()
    assert first == "RELOADING=1"
    assert int(second.removeprefix("MONOTONIC_USEC=")) > 0


def test_an_abstract_address() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind("")  # the kernel chooses an abstract one
        name = made.getsockname()[1:].decode()
        Readiness({VARIABLE: f"@{name}"}).announce()
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
def test_the_watchdog_is_the_process_s_own(
    listener: socket.socket, more: dict[str, str], seconds: float | None
) -> None:
    assert Readiness(environ_for(listener, **more)).watchdog_seconds == seconds
    alone = Readiness(more)
    alone.announce()
    assert (alone.is_awaited, alone.watchdog_seconds) == (False, None)


def test_a_service_manager_that_is_gone_is_told_of_once(
    listener: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    readiness = Readiness(environ_for(listener))
    listener.close()
    readiness.announce()
    readiness.tell("WATCHDOG=1")
    assert len([one for one in caplog.records if "does not take messages" in one.message]) == 1


def test_an_address_where_nobody_listens(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not Readiness({VARIABLE: str(tmp_path / "nobody")}).is_awaited
    assert f"{VARIABLE} = {tmp_path}" in caplog.text
