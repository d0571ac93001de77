"""The scheduler as a process: start, refusal to start, service, stop."""

import concurrent.futures
import contextlib
import pathlib
import re
import signal
import sqlite3
import uuid

import pytest

from scheduler import errors
from scheduler.concurrency import EVENTLET, THREADING
from scheduler.db import migration
from scheduler.db.database import EMBEDDED_FILE, Database
from scheduler.rpc.context import RequestContext
from tests.builders import a_request
from tests.functional import gate_driver
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import scheduler_api
from tests.world.calling import crowd
from tests.world.process import Daemon

pytestmark = pytest.mark.functional

PROGRAM = "nova-scheduler"
REPOSITORY = pathlib.Path(__file__).parents[2]
CONTEXT = RequestContext("u", "p", overwrite=False)
NO_HEARTBEATS = {"service_down_time": 3600}
GATE = "tests.functional.gate_driver.GateDriver"


@pytest.fixture
def scheduler(deployment, tables):
    """A function that starts one on a bus with options of ``[scheduler]`` and ``[DEFAULT]``."""

    def start(transport_url, backend=EVENTLET, folder=None, default=None, **options):
        settings = {
            "DEFAULT": {"host": "sched1", "debug": False, **(default or {})},
            "database": {"max_retries": 0},
            "scheduler": options,
        }
        made = deployment(transport_url, tables, backend=backend, settings=settings)
        gate = {} if folder is None else {gate_driver.FOLDER_VARIABLE: str(folder)}
        return made.start_scheduler(extra_environment={"PYTHONPATH": str(REPOSITORY), **gate})

    return start


@pytest.fixture
def tables(sqlite_url):
    migration.sync(Database(sqlite_url))
    return sqlite_url


@pytest.fixture
def api(tmp_path, transport_url):
    with scheduler_api(tmp_path, transport_url) as made:
        yield made


@pytest.fixture
def gate(tmp_path):
    """The folder through which :class:`gate_driver.GateDriver` is watched and controlled."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


def begun(folder):
    return len(list(folder.glob(f"{gate_driver.BEGUN_PREFIX}*")))


def services_of(database_url):
    with contextlib.closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection:
        query = "SELECT host, binary, topic, disabled, report_count, version FROM services"
        return connection.execute(query).fetchall()


@pytest.mark.parametrize(("backend", "workers"), [(EVENTLET, 1), (THREADING, 2)])
def test_serves_from_ready_to_sigterm(scheduler, transport_url, tables, api, backend, workers):
    often = {"report_interval": 1}
    daemon = scheduler(transport_url, backend, None, often, workers=workers, claims="database")
    daemon.wait_ready()

    with pytest.raises(errors.NoValidHost):
        api.select_destinations(CONTEXT, a_request(), [str(uuid.uuid4())])
    assert services_of(tables)[0][:4] == ("sched1", PROGRAM, "scheduler", 0)
    assert len(services_of(tables)) == 1
    # The first comes after five seconds.
    wait_until(lambda: services_of(tables)[0][4] >= 1, 60, "a heartbeat")

    assert daemon.terminate() == 0
    assert f"means of {backend}" in daemon.log
    assert "INFO scheduler.daemon.worker [-] Starting scheduler node (" in daemon.log
    assert not re.search(r"^\S+ \S+ \d+ (ERROR|CRITICAL|WARNING scheduler)", daemon.log, re.M)
    assert "Traceback" not in daemon.log


def test_periodic_task_of_the_driver(scheduler, backend, gate):
    options = {"driver": GATE, "periodic_task_interval": 1}
    scheduler("fake://", backend, gate, {"periodic_fuzzy_delay": 0}, **options).wait_ready()

    wait_until(lambda: len(list(gate.glob(f"{gate_driver.PERIODIC_PREFIX}*"))) >= 2, 60)


def test_sigterm_finishes_and_answers_what_is_in_hand(scheduler, transport_url, api, backend, gate):
    daemon = scheduler(transport_url, backend, gate, driver=GATE).wait_ready()
    with concurrent.futures.ThreadPoolExecutor() as callers:
        answers = [
            callers.submit(api.select_destinations, CONTEXT, a_request(), [str(uuid.uuid4())])
            for _ in range(5)
        ]
        wait_until(lambda: begun(gate) == 5, describe="all requests in hand")
        daemon.signal(signal.SIGTERM)
        daemon.wait_log("graceful shutdown started")
        (gate / gate_driver.OPEN).touch()

        hosts = [answer.result(timeout=60)[0]["host"] for answer in answers]

    assert hosts == ["cmp1"] * 5
    assert daemon.wait() == 0
    assert "nova-scheduler service graceful shutdown finished." in daemon.log


def test_calls_during_restarts_get_one_answer_each(scheduler, transport_url, tables, backend):
    """What comes while nobody serves waits for the next scheduler."""
    fleet.install(tables)
    running = scheduler(transport_url, backend, default=NO_HEARTBEATS).wait_ready()
    with crowd(transport_url, count=6) as callers:
        for _ in range(2):
            callers.wait_for_more_calls()
            assert running.terminate() == 0
            assert "Traceback" not in running.log
            running = scheduler(transport_url, backend, default=NO_HEARTBEATS).wait_ready()
        callers.wait_for_more_calls()
        callers.finish()
    assert running.terminate() == 0


def test_start_that_fails_in_the_worker_ends_the_daemon(scheduler, transport_url, backend):
    driver = "tests.functional.gate_driver.StatelessDriver"
    failed = scheduler(transport_url, backend, driver=driver, workers=2)

    assert failed.wait() == 1
    assert "there is none" in failed.log
    assert not failed.is_announced


def test_sigterm_while_the_broker_is_away(scheduler, backend):
    waiting = scheduler("rabbit://u:p@127.0.0.1:1/", backend)
    waiting.wait_log("Connection failed")

    assert waiting.terminate() == 0
    assert not waiting.is_announced


@pytest.mark.parametrize(
    "words", [(PROGRAM,), ("nova-conductor-stub", "serve"), ("nova-compute-stub",)], ids=" ".join
)
def test_starts_on_the_embedded_defaults_and_says_so(tmp_path, words):
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
