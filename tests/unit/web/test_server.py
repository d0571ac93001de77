"""The HTTP server on a real socket."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from scheduler import errors
from scheduler.web import server
from scheduler.web.server import KnownNames, Request, Response, Routes, Server
from tests.unit.web.asking import SECONDS, ask

MACHINE = "sched1"
MORE = ["Metrics.Example.org", "proxy"]


def hello(request: Request) -> Response:
    return Response.of_text("hello")


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with server.bind("127.0.0.1", 0, "[x] y") as opened:
        yield opened


@pytest.fixture
def routes() -> Routes:
    made = Routes()
    made.add("/hello", hello)
    return made


@pytest.fixture
def served(listening: socket.socket, routes: Routes) -> Iterator[socket.socket]:
    """A socket that one server answers."""
    started = Server(listening, routes, "test", KnownNames())
    started.start()
    yield listening
    started.stop()


@pytest.mark.parametrize(("method", "body"), [("GET", b"hello\n"), ("HEAD", b"")])
def test_get_and_head(served: socket.socket, method: str, body: bytes) -> None:
    reply = ask(served, "/hello", method)
    assert (reply.status, reply.headers["content-length"], reply.body) == (200, "6", body)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_nothing_can_be_changed(served: socket.socket, method: str) -> None:
    reply = ask(served, "/hello", method)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"\r\n\r\n", b""),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + 70_000 * b"x" + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET /hello HTTP/1.1\r\n" + 200 * b"X: 1\r\n" + b"\r\n", b"431"),
    ],
)
def test_nonsense(served: socket.socket, sent: bytes, answered: bytes) -> None:
    with socket.create_connection(served.getsockname(), timeout=SECONDS) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert answered in client.recv(10_000)
    assert ask(served, "/hello").status == 200


def test_clients_that_say_nothing_keep_nobody_waiting(served: socket.socket) -> None:
    with (
        socket.create_connection(served.getsockname()),
        socket.create_connection(served.getsockname()),
    ):
        assert ask(served, "/hello").status == 200


def test_several_serve_one_socket(listening: socket.socket, routes: Routes) -> None:
    several = [Server(listening, routes, f"test-{number}") for number in range(3)]
    for each in several:
        each.start()
    for each in several[1:]:
        each.stop()
    assert [ask(listening, "/hello").status for _ in range(5)] == 5 * [200]
    several[0].stop()


def test_no_more_than_so_many_at_once(
    listening: socket.socket, routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    entered, free = threading.Semaphore(0), threading.Event()

    def slow(request: Request) -> Response:
        entered.release()
        free.wait(SECONDS)
        return Response.of_text("done")

    routes.add("/slow", slow)
    started = Server(listening, routes, "test")
    started.start()
    asking = [threading.Thread(target=ask, args=(listening, "/slow")) for _ in range(4)]
    for each in asking:
        each.start()
    assert [entered.acquire(timeout=seconds) for seconds in (SECONDS, SECONDS, 0.2)] == [
        *(True, True, False)
    ]
    free.set()
    for each in asking:
        each.join()
    assert [entered.acquire(timeout=0) for _ in range(3)] == [True, True, False]
    started.stop()


@pytest.mark.parametrize(
    ("host", "port_is_taken", "reason"),
    [("127.0.0.1", True, "Address already in use"), ("name.invalid", False, "name.invalid")],
)
def test_an_address_that_cannot_be_used(
    listening: socket.socket, host: str, port_is_taken: bool, reason: str
) -> None:
    port = listening.getsockname()[1] if port_is_taken else 80
    with pytest.raises(errors.ConfigurationError, match=rf"\[x\] y.*{host}:{port}.*") as caught:
        server.bind(host, port, "[x] y")
    assert reason in str(caught.value)


def test_ipv6() -> None:
    assert server.at("::1", 80) == "[::1]:80"
    with server.bind("::1", 0, "[x] y") as opened:
        assert opened.family == socket.AF_INET6


# --- names -------------------------------------------------------------------------------

KNOWN = (
    *(None, "127.0.0.1:9642", "127.0.0.1", "10.1.2.3:80", "[::1]:9642", "[::1]"),
    *("localhost:9642", "LocalHost.", f"{MACHINE}:9642", "proxy"),
    *("metrics.example.org", "METRICS.example.org.:80"),
)
UNKNOWN = (
    *("", ":9642", "evil.example:9642", "localhost.evil.example", f"{MACHINE}.evil.example"),
    *("127.0.0.1.evil.example", "0x7f000001", "2130706433", "[evil.example]"),
    *("[::1].evil.example", "127.0.0.1@evil.example", "127.0.0.1/evil.example", "[::1"),
)


@pytest.mark.parametrize(
    ("header", "is_known"), [*((h, True) for h in KNOWN), *((h, False) for h in UNKNOWN)]
)
def test_known_names(header: str | None, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: MACHINE)
    assert KnownNames(MORE).knows(header) is is_known
    assert KnownNames(["*"]).knows(header)


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
def test_names_over_a_socket(served: socket.socket, hosts: list[str], status: int) -> None:
    connection = http.client.HTTPConnection(*served.getsockname()[:2], timeout=60)
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
