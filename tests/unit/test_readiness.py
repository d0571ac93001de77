"""READY=1 is sent when it is true, and once."""

from __future__ import annotations

import os
import pathlib
import socket
from collections.abc import Iterator

import pytest

from scheduler.readiness import VARIABLE, Readiness


@pytest.fixture
def listener(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(path)
        made.setblocking(False)
        monkeypatch.setenv(VARIABLE, path)
        yield made


def test_hidden_until_announced_once(listener: socket.socket) -> None:
    readiness = Readiness()
    assert VARIABLE not in os.environ

    readiness.announce()
    readiness.announce()

    assert listener.recv(100) == b"READY=1"
    with pytest.raises(BlockingIOError):
        listener.recv(100)
    assert VARIABLE not in os.environ


def test_without_service_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    Readiness().announce()
    assert VARIABLE not in os.environ
