"""What can be asked of a worker, over a bus inside this process."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler import errors
from scheduler.daemon.worker_table import WorkerTable
from scheduler.introspection import endpoint
from scheduler.introspection.endpoint import METHODS, IntrospectionEndpoint
from scheduler.rpc import transport as bus
from scheduler.rpc.client import WorkerClient
from scheduler.rpc.dispatcher import EndpointPolicy
from tests.process_options import on_in_process_bus

DOCUMENTED = pathlib.Path(__file__).parents[3] / "docs" / "rpc.md"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerClient]:
    conf = on_in_process_bus(tmp_path_factory.mktemp("conf"))
    transport = bus.get_transport(conf)
    worker_table = WorkerTable(3)
    worker_table.join()
    manager: Any = SimpleNamespace(driver=object())
    with contextlib.ExitStack() as ending:
        ending.callback(transport.cleanup)
        endpoint.serve_introspection(conf, manager, worker_table, transport, ending)
        yield WorkerClient(transport, conf)
    cfg.CONF.reset()


def ask(client: WorkerClient, method: str, number: int = 1, **arguments: Any) -> Any:
    return client.ask(cfg.CONF.host, number, method, 20, **arguments)


def test_a_worker_says_who_it_is_and_no_other_answers(client: WorkerClient) -> None:
    answer = ask(client, "worker")
    assert (answer["host"], answer["worker"], answer["workers"]) == (cfg.CONF.host, 1, 3)
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client.ask(cfg.CONF.host, 2, "worker", 0.2)


@pytest.mark.parametrize(
    ("method", "arguments", "error", "text"),
    [
        ("worker", {"bogus": 1}, errors.InvalidRequest, "unexpected keyword argument 'bogus'"),
        ("no_such_method", {}, oslo_messaging.RemoteError, "no_such_method"),
        ("_subject", {}, oslo_messaging.RemoteError, "_subject"),
    ],
)
def test_what_cannot_be_asked_is_an_error_and_the_worker_goes_on(
    client: WorkerClient, method: str, arguments: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises((error, oslo_messaging.NoSuchMethod), match=text):
        ask(client, method, **arguments)
    assert ask(client, "worker")


def test_exactly_the_listed_methods_are_within_reach_and_documented() -> None:
    endpoint, policy = IntrospectionEndpoint(subject=None), EndpointPolicy()  # type: ignore[arg-type]
    reachable = {name for name in dir(endpoint) if policy.is_allowed(endpoint, name)}
    assert reachable == METHODS.keys()
    text = DOCUMENTED.read_text(encoding="utf-8")
    assert [name for name in METHODS if f"| `{name}` |" not in text] == []


def test_a_worker_without_a_place_is_not_served(caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.ExitStack() as ending:
        endpoint.serve_introspection(cfg.CONF, None, WorkerTable(1), None, ending)  # type: ignore[arg-type]
    assert "one too many" in caplog.text
