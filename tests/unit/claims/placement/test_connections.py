"""Connections to a server that has few processes: how many there are, and when each is closed."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from scheduler.claims.placement.connections import KEPT_SECONDS, Connections, answer_until
from tests.servers.loopback_http import LoopbackServer, QuietHandler
from tests.waiting import wait_until


class Lasting(QuietHandler):
    """Answers on connections that last, once its owner lets it; notes which were used."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        self.server.owner.ports.append(self.client_address[1])
        assert self.server.owner.may_answer.wait(30)
        self.send(204)

    def finish(self):
        super().finish()
        self.server.owner.closed.append(self.client_address[1])


class SlowToConnect(Connections):
    def get_connection_with_tls_context(self, *args, **more):
        time.sleep(3 * KEPT_SECONDS)
        return super().get_connection_with_tls_context(*args, **more)


@contextlib.contextmanager
def lasting_connections(most, adapter=Connections):
    with LoopbackServer(Lasting) as server, requests.Session() as http:
        server.ports, server.closed, server.may_answer = [], [], threading.Event()
        http.mount("http://", adapter(most))
        yield server, lambda timeout=30: http.get(server.endpoint, timeout=timeout).status_code
        server.may_answer.set()


def test_a_connection_is_closed_however_long_its_call_took_to_begin():
    with lasting_connections(2, SlowToConnect) as (server, call):
        server.may_answer.set()
        assert call() == 204
        wait_until(lambda: server.closed, 10, "the connection is closed")


def test_a_connection_is_closed_after_a_while():
    with lasting_connections(2) as (server, call):
        server.may_answer.set()
        assert [call(), call()] == [204, 204]
        wait_until(lambda: server.closed, 10, "the connection is closed")
        assert call() == 204
    first, second, third = server.ports
    assert first == second == server.closed[0] != third


def test_an_error_keeps_no_connection_open():
    with lasting_connections(2) as (server, call), ThreadPoolExecutor() as pool:
        first = pool.submit(call)
        wait_until(lambda: server.ports, 30, "the first call has arrived")
        with pytest.raises(requests.Timeout) as error:
            call(0.1)
        server.may_answer.set()
        assert first.result() == 204
        wait_until(lambda: len(server.closed) == 2, 10, "both connections are closed")
    assert error.value.__traceback__, "it still has hold of all that it met with"


def test_there_are_no_more_connections_than_allowed_and_no_wait_is_endless():
    with lasting_connections(1) as (server, call), ThreadPoolExecutor() as pool:
        first = pool.submit(call)
        wait_until(lambda: server.ports, 30, "the first call has arrived")
        with pytest.raises(requests.ConnectionError, match=r"0\.1 s: \[placement\] max_conn.* = 1"):
            call(0.1)
        second = pool.submit(call)
        server.may_answer.set()
        assert (first.result(), second.result()) == (204, 204)
    assert len(set(server.ports)) == 1


def test_what_nobody_waits_for_any_longer_is_not_sent():
    """As a claim that waited for a token."""
    with lasting_connections(1) as (server, call):
        server.may_answer.set()
        with pytest.raises(requests.Timeout):
            answer_until(time.monotonic(), call)
        assert call() == 204
    assert len(server.ports) == 1
