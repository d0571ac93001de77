"""Which function answers which path, and the HTTP server on a real socket."""

import contextlib
import http.client
import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

from scheduler import errors
from scheduler.web import server
from scheduler.web.server import KnownNames, Response, Routes, Server
from tests.unit.web.asking import SECONDS, ask

MACHINE = "sched1"
MORE = ["Metrics.Example.org", "proxy"]


def echo(request):
    return Response.of_json([request.path, request.rest, dict(request.query)])


def broken(request):
    raise RuntimeError("out of order")


def busy(request):
    raise TimeoutError("the hub is slow")


def no_thread(_self):
    raise RuntimeError("can't start new thread")


@pytest.fixture
def listening():
    with server.bind("127.0.0.1", 0, "[x] y") as opened:
        yield opened


@pytest.fixture
def routes():
    made = Routes()
    made.add("/hello", lambda _request: Response.of_text("hello"))
    for path in ("/status", "/status/", "/status/decisions/"):
        made.add(path, echo)
    made.add("/broken", broken)
    made.add("/busy", busy)
    return made


@pytest.fixture
def served(listening, routes):
    """A socket that one server answers."""
    started = Server(listening, routes, "test", KnownNames())
    started.start()
    yield listening
    started.stop()


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/status", ["/status", "", {}]),
        ("/status?a=1&a=2&b=", ["/status", "", {"a": "2", "b": ""}]),
        ("/status/page.js", ["/status/page.js", "page.js", {}]),
        ("/status/decisions/req%201", ["/status/decisions/req 1", "req 1", {}]),
    ],
)
def test_answered(routes, target, answer):
    response = routes.answer("GET", target, {})
    assert (response.status, json.loads(response.body)) == (200, answer)


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        *(("GET", target, 404, "not found") for target in ("/hello/", "/nothing", "", "http://[x")),
        ("GET", "/broken", 500, "internal error"),
        ("GET", "/busy", 503, "busy"),
        ("DELETE", "/nothing", 405, "only GET and HEAD are answered"),
        ("HEAD", "/", 200, "/\n/broken\n/busy\n/hello\n/status\n/status/\n/status/decisions/"),
    ],
)
def test_status(routes, method, target, status, body):
    response = routes.answer(method, target, {})
    assert (response.status, response.body.decode()) == (status, f"{body}\n")


@pytest.mark.parametrize(("method", "body"), [("GET", b"hello\n"), ("HEAD", b"")])
def test_get_and_head(served, method, body):
    reply = ask(served, "/hello", method)
    assert (reply.status, reply.headers["content-length"], reply.body) == (200, "6", body)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["cache-control"] == "no-store"


def test_a_machine_without_a_thread_to_spare_keeps_the_server(served, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(ConnectionError):
            ask(served, "/hello")
    assert ask(served, "/hello").status == 200


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "BREW"])
def test_nothing_can_be_changed(served, method):
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
def test_nonsense(served, sent, answered):
    with socket.create_connection(served.getsockname(), timeout=SECONDS) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert answered in client.recv(10_000)
    assert ask(served, "/hello").status == 200


def test_several_serve_one_socket(listening, routes):
    several = [Server(listening, routes, f"test-{number}") for number in range(3)]
    for each in several:
        each.start()
    for each in several[1:]:
        each.stop()
    assert [ask(listening, "/hello").status for _ in range(5)] == 5 * [200]
    several[0].stop()


def test_a_path_that_is_asked_too_often_keeps_no_other_waiting(listening, routes):
    free, entered = threading.Event(), threading.Semaphore(0)

    def slow(request):
        entered.release()
        free.wait(SECONDS)
        return Response.of_text("done")

    routes.add("/slow", slow)
    started = Server(listening, routes, "test")
    started.start()
    several = server.MOST_AT_ONCE + server.MOST_WAITING + 3
    with ThreadPoolExecutor(several) as asking:
        replies = [asking.submit(ask, listening, "/slow") for _ in range(several)]
        refused = [
            each.result().status for _, each in zip(range(3), as_completed(replies), strict=False)
        ]
        waited = [entered.acquire(timeout=seconds) for seconds in (SECONDS, SECONDS, 0.2)]
        assert (refused, waited) == ([503, 503, 503], [True, True, False])
        assert ask(listening, "/hello").status == 200
        free.set()
        assert Counter(each.result().status for each in replies) == {200: several - 3, 503: 3}
    started.stop()


def test_the_slowest_client_makes_room(served, monkeypatch):
    monkeypatch.setattr(server, "MOST_SLOW", 2)
    with contextlib.ExitStack() as several:
        slow = []
        for _ in range(4):
            client = several.enter_context(socket.create_connection(served.getsockname()))
            client.settimeout(SECONDS)
            client.sendall(b"GET /hel")
            slow.append(client)
            assert ask(served, "/hello").status == 200
        assert [client.recv(1) for client in slow[:2]] == [b"", b""]
        slow[3].sendall(b"lo HTTP/1.0\r\n\r\n")
        assert slow[3].recv(100).startswith(b"HTTP/1.0 200")


def test_an_address_that_cannot_be_used(listening):
    taken = listening.getsockname()[1]
    for host, port, reason in (
        ("127.0.0.1", taken, "Address already in use"),
        ("name.invalid", 80, ""),
    ):
        with pytest.raises(errors.ConfigurationError, match=rf"\[x\] y.*{host}:{port}: .*{reason}"):
            server.bind(host, port, "[x] y")


def test_ipv6():
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
def test_known_names(header, is_known, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: MACHINE)
    assert KnownNames(MORE).knows(header) is is_known
    assert KnownNames(["*"]).knows(header)


@pytest.mark.parametrize("listed", ["fd00:0:0::9", "[FD00::9]"])
@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        *((each, True) for each in ("10.0.0.9:9642", "10.0.0.5", "127.0.0.1", "[::1]:80", "proxy")),
        *((each, True) for each in ("[fd00::9]:80", "[FD00:0::9]:80")),
        *((each, False) for each in ("10.0.0.7:9642", "[fd00::8]:80", "evil.example")),
    ],
)
def test_addresses_that_are_listed_are_the_only_ones_in_any_spelling(header, is_known, listed):
    assert KnownNames(["10.0.0.9", "proxy", listed], "10.0.0.5").knows(header) is is_known


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        *((hosts, 200) for hosts in (["127.0.0.1:1"], [])),
        (["evil.example"], 403),
        *((hosts, 403) for hosts in (["localhost", "evil.example"], ["evil.example", "localhost"])),
    ],
)
def test_names_over_a_socket(served, hosts, status):
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
