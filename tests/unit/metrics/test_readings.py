"""What is read off the running parts."""

import datetime
import platform
import time
from types import SimpleNamespace

import pytest

from scheduler.db.cells import CellHealth
from scheduler.hosts import capacity
from scheduler.hosts.host_manager import HostManager
from scheduler.metrics import catalogue, readings
from scheduler.metrics.samples import Samples
from scheduler.rpc.in_flight import InFlightRequests
from tests.builders import NOW, a_conf, a_fleet

DOWN_SECONDS = 60.0


def values(samples, metric):
    return {labels: value for (of, labels), value in samples.values.items() if of == metric.name}


@pytest.mark.parametrize(
    ("host", "state"),
    [
        ({}, "up"),
        ({"service_last_seen": NOW - 61}, "down"),
        ({"service_last_seen": NOW + 61}, "down"),
        ({"service_forced_down": True}, "down"),
        ({"service_disabled": True}, "disabled"),
        ({"service_disabled": True, "service_last_seen": NOW - 61}, "disabled"),
        ({"has_service": False}, "without_service"),
    ],
)
def test_states_of_hosts(host, state):
    table = a_fleet({}, {})
    row = table.row_numbers(["h2"])[0]
    table.update(row, host)
    found = capacity.host_states(table, NOW, DOWN_SECONDS)
    assert sum(found.values()) == 2
    assert {name: count for name, count in found.items() if count} == (
        {"up": 2} if state == "up" else {"up": 1, state: 1}
    )


def test_cells():
    read_at = datetime.datetime(2026, 11, 22, 3, 0)
    cells = [
        CellHealth("u1", "one", read_at=read_at),
        CellHealth("u2", None, True, 3, None, "away"),
    ]
    samples = Samples()
    hosts = HostManager(a_conf(), SimpleNamespace(cell_health=lambda: cells), clock=lambda: 10.5)
    hosts.read_at = 9.0
    driver = SimpleNamespace(host_manager=hosts)
    manager = SimpleNamespace(replies=SimpleNamespace(repeated=2), driver=driver)
    readings.read_manager(samples, manager)
    assert values(samples, catalogue.CELL_UP) == {("u1", "one"): 1, ("u2", ""): 0}
    assert values(samples, catalogue.CELL_FAILURES) == {("u1", "one"): 0, ("u2", ""): 3}
    assert values(samples, catalogue.CELL_READ_AT) == {("u1", "one"): 1795316400}
    assert values(samples, catalogue.STATE_AGE) == {(): 1.5}
    assert samples.read_at == 9.0


def test_requests_in_hand():
    now = [0.0]
    in_flight = InFlightRequests(clock=lambda: now[0])
    samples = Samples()
    with in_flight.request("select_destinations"):
        now[0] = 10.0
        with in_flight.request("ping"):
            now[0] = 15.0
            readings.read_in_flight(samples, in_flight)
    in_hand = {(catalogue.IN_FLIGHT.name, ()): 2, (catalogue.OLDEST.name, ()): 15.0}
    assert samples.values == in_hand
    readings.read_in_flight(samples, in_flight)
    assert samples.values == dict.fromkeys(in_hand, 0)


def test_a_process_that_starts():
    samples = Samples()
    readings.read_process(samples)
    readings.read_consumer(samples, None)
    assert values(samples, catalogue.MEMORY_BYTES)[()] > 10_000_000
    assert values(samples, catalogue.CPU_SECONDS)[()] > 0
    assert values(samples, catalogue.CONSUMER_UP) == {(): 0}
    assert 0 < values(samples, catalogue.OPEN_FDS)[()] < values(samples, catalogue.MAX_FDS)[()]
    assert time.time() - 7200 < values(samples, catalogue.STARTED_AT)[()] <= time.time()
    assert values(samples, catalogue.GC_RUNS).keys() == {("0",), ("1",), ("2",)}
    [python] = values(samples, catalogue.PYTHON_INFO)
    assert python[0] == platform.python_version()
