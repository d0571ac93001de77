"""The scheduler as a process: start, refusal to start, service, stop."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
import re
import signal
import sqlite3
import uuid
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from conductor_stub.scheduler_rpcapi import SchedulerAPI
from scheduler import conf as project_options
from scheduler.db import migration
from scheduler.db.database import EMBEDDED_FILE, Database
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request
from tests.functional import gate_driver
from tests.servers.rabbitmq import RabbitMQ
from tests.waiting import wait_until
from tests.world.fixtures import StartDaemon
from tests.world.process import Daemon

pytestmark = pytest.mark.functional

PROGRAM = "nova-scheduler"
REPOSITORY = pathlib.Path(__file__).parents[2]
CONTEXT = RequestContext("u", "p", overwrite=False)
GATE = "tests.functional.gate_driver.GateDriver"


def config(transport_url: str, database_url: str, **scheduler: Any) -> str:
    lines = [f"{name} = {value}" for name, value in {"workers": 1, **scheduler}.items()]
    return "\n".join(
        [
            "[DEFAULT]",
            "host = sched1",
            f"transport_url = {transport_url}",
            "[database]",
            f"connection = {database_url}",
            "max_retries = 0",
            "[scheduler]",
            *lines,
            "",
        ]
    )


@pytest.fixture
def tables(sqlite_url: str) -> str:
    """A database with its tables."""
    migration.sync(Database(sqlite_url))
    return sqlite_url


@contextlib.contextmanager
def caller(transport_url: str) -> Iterator[SchedulerAPI]:
    """The client, on the bus of that URL."""
    project_options.register_all(cfg.CONF)
    cfg.CONF([], project="nova", default_config_files=[], default_config_dirs=[])
    oslo_messaging.TransportURL.parse(cfg.CONF)  # registers the option
    cfg.CONF.set_override("transport_url", transport_url)
    transport = bus.get_transport(cfg.CONF)
    try:
        yield SchedulerAPI(transport, cfg.CONF)
    finally:
        transport.cleanup()
        cfg.CONF.clear_override("transport_url")
        cfg.CONF.reset()


@pytest.fixture
def api(transport_url: str) -> Iterator[SchedulerAPI]:
    """A caller on the test's bus."""
    with caller(transport_url) as made:
        yield made


@pytest.fixture
def gate(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder through which :class:`gate_driver.GateDriver` is watched and controlled."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


def gate_environment(folder: pathlib.Path) -> dict[str, str]:
    return {"PYTHONPATH": str(REPOSITORY), gate_driver.FOLDER_VARIABLE: str(folder)}


def begun(folder: pathlib.Path) -> int:
    return len(list(folder.glob(f"{gate_driver.BEGUN_PREFIX}*")))


def services_of(database_url: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection:
        query = "SELECT host, binary, topic, disabled, report_count, version FROM services"
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("workers", [1, 2])
def test_serves_from_ready_to_sigterm(
    daemon: StartDaemon,
    transport_url: str,
    tables: str,
    api: SchedulerAPI,
    backend: str,
    workers: int,
) -> None:
    text = config(transport_url, tables, workers=workers, claims="database")
    text = text.replace("[DEFAULT]", "[DEFAULT]\nreport_interval = 1")
    scheduler = daemon(PROGRAM, text, backend=backend).wait_ready()

    assert api.ping(CONTEXT, "hello", timeout_seconds=60)["arg"] == "hello"
    assert services_of(tables)[0][:4] == ("sched1", PROGRAM, "scheduler", 0)
    assert len(services_of(tables)) == 1
    wait_until(lambda: services_of(tables)[0][4] >= 2, 60, "two heartbeats")

    assert scheduler.terminate() == 0
    assert f"means of {backend}" in scheduler.log
    assert "INFO scheduler.daemon.worker [-] Starting scheduler node (" in scheduler.log
    assert not re.search(r"^\S+ \S+ \d+ (ERROR|CRITICAL|WARNING scheduler)", scheduler.log, re.M)
    assert "Traceback" not in scheduler.log


def test_periodic_task_of_the_driver(
    daemon: StartDaemon, tables: str, backend: str, gate: pathlib.Path
) -> None:
    text = config("fake://", tables, driver=GATE, periodic_task_interval=1)
    text = text.replace("[DEFAULT]", "[DEFAULT]\nperiodic_fuzzy_delay = 0")
    daemon(PROGRAM, text, backend=backend, extra_environment=gate_environment(gate)).wait_ready()

    wait_until(lambda: len(list(gate.glob(f"{gate_driver.PERIODIC_PREFIX}*"))) >= 2, 60)


def test_sigterm_finishes_and_answers_what_is_in_hand(
    daemon: StartDaemon,
    transport_url: str,
    tables: str,
    api: SchedulerAPI,
    backend: str,
    gate: pathlib.Path,
) -> None:
    text = config(transport_url, tables, driver=GATE)
    environment = gate_environment(gate)
    scheduler = daemon(PROGRAM, text, backend=backend, extra_environment=environment)
    scheduler.wait_ready()
    with concurrent.futures.ThreadPoolExecutor() as callers:
        answers = [
            callers.submit(api.select_destinations, CONTEXT, a_request(), [str(uuid.uuid4())])
            for _ in range(5)
        ]
        wait_until(lambda: begun(gate) == 5, describe="all requests in hand")
        scheduler.signal(signal.SIGTERM)
        scheduler.wait_log("graceful shutdown started")
        (gate / gate_driver.OPEN).touch()

        hosts = [answer.result(timeout=60)[0]["host"] for answer in answers]

    assert hosts == ["cmp1"] * 5
    assert scheduler.wait() == 0


def test_requests_after_sigterm_wait_for_the_next_scheduler(
    daemon: StartDaemon,
    transport_url: str,
    tables: str,
    api: SchedulerAPI,
    backend: str,
    gate: pathlib.Path,
) -> None:
    def start() -> Daemon:
        text = config(transport_url, tables, driver=GATE)
        environment = gate_environment(gate)
        return daemon(PROGRAM, text, backend=backend, extra_environment=environment).wait_ready()

    (gate / gate_driver.OPEN).touch()
    assert start().terminate() == 0
    with concurrent.futures.ThreadPoolExecutor() as callers:
        answer = callers.submit(api.select_destinations, CONTEXT, a_request(), [OWN_UUID])
        start()
        assert answer.result(timeout=60)[0]["host"] == "cmp1"


def test_start_that_fails_in_the_worker_ends_the_daemon(
    daemon: StartDaemon, transport_url: str, tables: str, backend: str
) -> None:
    driver = "tests.functional.gate_driver.StatelessDriver"
    text = config(transport_url, tables, driver=driver, workers=2)
    environment = {"PYTHONPATH": str(REPOSITORY)}

    failed = daemon(PROGRAM, text, backend=backend, extra_environment=environment)

    assert failed.wait() == 1
    assert "there is none" in failed.log
    assert not failed.is_announced


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        pytest.param("guest:guest@", "guest:wrong-secret@", "ACCESS_REFUSED", id="password"),
        pytest.param("/%2F", "/nowhere", "vhost nowhere not found", id="virtual host"),
    ],
)
def test_a_broker_that_refuses_ends_the_daemon_with_one_line(
    daemon: StartDaemon,
    rabbitmq: RabbitMQ,
    tables: str,
    right: str,
    wrong: str,
    reason: str,
) -> None:
    refused = daemon(PROGRAM, config(rabbitmq.url().replace(right, wrong), tables))

    assert refused.wait() == 1
    lines = [line for line in refused.log.splitlines() if " CRITICAL " in line]
    assert len(lines) == 1, refused.log
    (line,) = lines
    assert "[DEFAULT] transport_url: the broker refuses this service: " in line
    assert reason in line
    assert "Traceback" not in refused.log
    assert "wrong-secret" not in refused.log


def test_sigterm_while_the_broker_is_away(daemon: StartDaemon, tables: str, backend: str) -> None:
    text = config("rabbit://u:p@127.0.0.1:1/", tables)
    waiting = daemon(PROGRAM, text, backend=backend)
    waiting.wait_log("Connection failed")

    assert waiting.terminate() == 0
    assert not waiting.is_announced


@pytest.mark.parametrize(
    "words", [(PROGRAM,), ("nova-conductor-stub", "serve"), ("nova-compute-stub",)], ids=" ".join
)
def test_starts_on_the_embedded_defaults_and_says_so(
    tmp_path: pathlib.Path, words: tuple[str, ...]
) -> None:
    places = {"HOME": str(tmp_path), "OS_DEFAULT__STATE_PATH": str(tmp_path)}
    alone = Daemon(words[0], list(words[1:]), tmp_path, extra_environment=places)
    try:
        alone.wait_ready()
        assert f"there is no nova.conf or {words[0]}.conf in ~/.nova, ~, " in alone.log
        assert "Running on the embedded defaults." in alone.log
        assert "no other process can reach this service" in alone.log
        assert (tmp_path / EMBEDDED_FILE).exists()
        assert alone.terminate() == 0
    finally:
        alone.close()
