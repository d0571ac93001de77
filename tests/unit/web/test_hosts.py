"""Which names of this service are known, by its rules and over a socket."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest

from scheduler.web import server
from scheduler.web.hosts import KnownNames
from scheduler.web.routes import Routes
from scheduler.web.server import Server

MACHINE = "sched1"
MORE = ["Metrics.Example.org", "proxy"]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: MACHINE)


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        (None, True),
        ("127.0.0.1:9642", True),
        ("127.0.0.1", True),
        ("10.1.2.3:80", True),
        ("[::1]:9642", True),
        ("[::1]", True),
        ("localhost:9642", True),
        ("LocalHost.", True),
        (f"{MACHINE}:9642", True),
        ("metrics.example.org", True),
        ("METRICS.example.org.:80", True),
        ("proxy", True),
        ("", False),
        (":9642", False),
        ("evil.example:9642", False),
        ("localhost.evil.example", False),
        (f"{MACHINE}.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("0x7f000001", False),
        ("2130706433", False),
        ("[evil.example]", False),
        ("[::1].evil.example", False),
        ("127.0.0.1@evil.example", False),
    ],
)
def test_known(header: str | None, is_known: bool) -> None:
    assert KnownNames(MORE).knows(header) is is_known


def test_any_name_where_that_is_wanted() -> None:
    assert KnownNames(["*"]).knows("evil.example")


@pytest.fixture
def served() -> Iterator[tuple[str, int]]:
    with server.bind("127.0.0.1", 0, "[x] y") as listening:
        started = Server(listening, Routes(), "test", KnownNames())
        started.start()
        yield listening.getsockname()[:2]
        started.stop()


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        (["127.0.0.1:1"], 200),
        (["evil.example"], 403),
        (["localhost", "evil.example"], 403),
        (["evil.example", "localhost"], 403),
        ([], 200),
    ],
)
def test_over_a_socket(served: tuple[str, int], hosts: list[str], status: int) -> None:
    connection = http.client.HTTPConnection(*served, timeout=60)
    connection.putrequest("GET", "/", skip_host=True)
    for each in hosts:
        connection.putheader("Host", each)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    assert response.status == status
    if status == 403:
        assert "'evil.example'" in body
        assert "[metrics_endpoint] allowed_hosts" in body
