"""What a daemon of two workers shows of itself while it decides, loses its broker and a worker."""

import contextlib
import resource
import signal
import socket
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import scheduler
from scheduler import errors
from tests.servers.fixtures import require
from tests.servers.rabbitmq import PROGRAMS, RabbitMQ
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.connection import RawCaller
from tests.world.deployment import Deployment
from tests.world.observing import SETTINGS, Endpoint
from tests.world.process import BACKENDS, Daemon

pytestmark = pytest.mark.functional

REQUESTS = 6
TOO_MUCH_MB = 10 * fleet.MEMORY_MB
WORKERS = 2
SECRET = "k3epq!et"


@dataclass(frozen=True)
class Observed:
    """A scheduler of two workers on a broker of its own."""

    broker: RabbitMQ
    deployment: Deployment
    daemon: Daemon
    endpoint: Endpoint

    @property
    def transport_url(self):
        return self.broker.url()

    def workers(self):
        return psutil.Process(self.daemon.pid).children()


@pytest.fixture(scope="module")
def broker():
    """One that the tests here may stop."""
    require(PROGRAMS)
    with RabbitMQ() as server:
        yield server


@pytest.fixture(scope="module", params=BACKENDS)
def observed(request, broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("observed")
    database_url = f"sqlite:///{folder}/nova.sqlite"
    settings = {
        **SETTINGS,
        "DEFAULT": {"host": "sched1", "service_down_time": 3600},
        "scheduler": {"workers": WORKERS, "claims": "database"},
        "trusted_computing": {"attestation_auth_blob": SECRET},
    }
    with Deployment(
        folder, broker.url(), database_url, backend=request.param, settings=settings
    ) as deployment:
        fleet.install(database_url)
        of_killed_ones = set(Path("/tmp").glob("nova-scheduler-*"))
        daemon = deployment.start_scheduler().wait_ready()
        yield Observed(broker, deployment, daemon, Endpoint.of(daemon))
        assert daemon.terminate() == 0
        assert set(Path("/tmp").glob(f"nova-scheduler-{daemon.pid}-*")) <= of_killed_ones


def uuid(number):
    return f"00000000-0000-4000-8000-{number:012d}"


def grown(observed, before, number, *series):
    """The metrics when *series* has grown by *number* since *before*."""
    latest = {}

    def has_grown():
        latest.update(observed.endpoint.metrics())
        return latest.get(series, 0) - before.get(series, 0) == number

    wait_until(has_grown, 60, f"{number} more of {series}")
    return latest


def test_metrics_before_and_after_decisions(observed, tmp_path):
    before = observed.endpoint.metrics()
    assert before["workers", "alive"] == before["workers", "configured"] == WORKERS
    assert before["hosts", "up"] == len(fleet.HOSTS)
    assert before["consumer_up",] == 1
    assert before["zone_hosts", "taking", fleet.ZONE] == len(fleet.ZONE_HOSTS)
    assert before["zone_memory_bytes", "free", "nova"] == 1.5 * fleet.MEMORY_MB * 1024**2
    fits = "flavor_fits", "m1.small", fleet.ZONE
    wait_until(lambda: observed.endpoint.metrics().get(fits, 0) > 0, 60, "flavors that fit")

    with scheduler_api(tmp_path, observed.transport_url) as api:
        for number in range(REQUESTS):
            api.select_destinations(a_context(), fleet.a_spec(uuid(number)), [uuid(number)])
        too_big = fleet.a_spec(uuid(99))
        too_big.flavor.memory_mb = TOO_MUCH_MB
        with pytest.raises(errors.NoValidHost):
            api.select_destinations(a_context(), too_big, [uuid(99)])
    after = grown(observed, before, REQUESTS + 1, "decision_duration_seconds_count")
    for series, more in {
        ("decisions_total", "selected"): REQUESTS,
        ("decisions_total", "no_host_fits"): 1,
        ("instances_placed_total",): REQUESTS,
        ("decision_duration_seconds_bucket", "+Inf"): REQUESTS + 1,
        ("hosts_removed_total", "RamFilter", "ram.physical"): len(fleet.HOSTS),
    }.items():
        assert after[series] - before.get(series, 0) == more, series
    reads = "state_read_duration_seconds_count", "changes"
    assert after[reads] > before[reads]
    # Labels come sorted by name.
    build = "database", observed.deployment.backend, "FilterScheduler", scheduler.__version__
    assert after["build_info", *build] == 1


def test_what_cannot_be_served_is_counted(observed):
    before = observed.endpoint.metrics()
    with RawCaller(observed.transport_url) as raw:
        raw.publish("{not json")
        raw.call({"method": "select_destinations", "args": [], "version": "4.5"})
        raw.call({"method": "sell_destinations", "args": {}, "version": "4.5"})
    grown(observed, before, 1, "messages_undecodable_total")
    observed.daemon.wait_log("A message of 9 bytes cannot be read: it is dropped")
    assert "Failed to process message" not in observed.daemon.log
    for error in ("InvalidRequest", "UnknownMethod"):
        grown(observed, before, 1, "messages_refused_total", error)


#: What 1,000 clients send who then say, and read, nothing more.
SLOW = (b"", b"GET /status HTTP/1.0\r\nX-Slow: ", b"GET /metrics HTTP/1.0\r\n\r\n")
MANY = 1000


def test_health_is_told_within_a_second_whatever_others_do_there(observed):
    _soft, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * MANY), hard))
    address = urllib.parse.urlsplit(observed.endpoint.url)
    took = []
    with contextlib.ExitStack() as ending:
        ending.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        for number in range(MANY):
            client = ending.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            client.settimeout(60)
            client.connect((address.hostname, address.port))
            client.sendall(SLOW[number % len(SLOW)])
            if number % 100 == 99:
                began = time.monotonic()
                assert observed.endpoint.failing("/healthz") == (200, [])
                took.append(time.monotonic() - began)
    assert min(took[MANY // 200 :]) < 1  # whatever else keeps the machine busy now and then
    # Whoever asked for that and went away is answered first.
    wait_until(lambda: observed.endpoint.get("/metrics")[0] == 200, 60, "an answer again")


def test_every_process_reports_on_a_signal(observed, tmp_path):
    with scheduler_api(tmp_path, observed.transport_url) as api:
        api.select_destinations(a_context(), fleet.a_spec(uuid(700)), [uuid(700)])
    for each in (psutil.Process(observed.daemon.pid), *observed.workers()):  # as systemctl does
        each.send_signal(signal.SIGUSR2)

    def are_told_to_the_end():
        log = observed.daemon.log
        ends = " shown, newest first", "none in this process\n"
        return sum(map(log.count, ends)) == WORKERS + 1

    wait_until(are_told_to_the_end, 60, "a report of each process")
    log = observed.daemon.log
    assert log.count("none in this process: each worker has its own") == 1
    assert log.count("up = 3") == WORKERS
    line = f"Placement of 1 instance(s) [{uuid(700)}]: selected [cmp"
    assert log.count(line) == 2, "one of the decision, one of the report"
    assert log.count("  attestation_auth_blob = ***") == WORKERS + 1
    assert observed.transport_url not in log
    assert SECRET not in log
    wait_until(lambda: observed.endpoint.failing("/readyz") == (200, []), 60, "ready")


@pytest.mark.parametrize("observed", BACKENDS[:1], indirect=True)
def test_a_broker_that_stops_and_comes_back(observed, tmp_path):
    endpoint = observed.endpoint
    for path in ("/healthz", "/readyz"):
        wait_until(lambda path=path: endpoint.failing(path) == (200, []), 60, f"200 of {path}")

    observed.broker.stop()
    wait_until(lambda: endpoint.failing("/readyz") == (503, ["consumer"]), 60, "not ready")
    assert endpoint.failing("/healthz") == (200, []), "a restart would not help"
    assert endpoint.metrics()["consumer_up",] == 0

    observed.broker.start()
    wait_until(lambda: endpoint.failing("/readyz") == (200, []), 60, "ready again")
    with scheduler_api(tmp_path, observed.transport_url) as api:
        api.select_destinations(a_context(), fleet.a_spec(uuid(500)), [uuid(500)])


def test_a_worker_that_hangs_and_one_that_is_killed(observed):
    endpoint = observed.endpoint
    before = endpoint.metrics()
    hung, _other = observed.workers()
    hung.suspend()
    try:
        wait_until(lambda: is_unhealthy(endpoint), 60, "the hung worker to be missed")
    finally:
        hung.resume()
    wait_until(lambda: endpoint.failing("/healthz") == (200, []), 60, "it to be back")

    hung.kill()
    wait_until(lambda: hung not in observed.workers(), 60, "the end of the killed worker")
    wait_until(lambda: endpoint.failing("/readyz") == (200, []), 60, "another in its place")
    after = endpoint.metrics()
    assert after["workers", "alive"] == WORKERS
    assert after["worker_starts_total",] == WORKERS + 1
    outcomes = [key for key in before if key[0] == "decisions_total"]
    assert [after[key] for key in outcomes] == [before[key] for key in outcomes]


def is_unhealthy(endpoint):
    """Whether it says so; the worker that hangs may just have taken the question."""
    try:
        return endpoint.failing("/healthz")[0] == 503
    except TimeoutError:
        return False
