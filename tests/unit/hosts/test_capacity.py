"""Totals by zone, and the servers that still fit: as many as the filters then let in."""

import random

import numpy as np
import pytest

from scheduler.filters.core_filter import CoreFilter
from scheduler.filters.disk_filter import DiskFilter
from scheduler.filters.ram_filter import RamFilter
from scheduler.hosts.capacity import LARGEST_RATIO, Capacity
from tests.builders import NOW, a_conf, a_host, a_request, verdict
from tests.unit.status_page.test_fleet import a_manager

FILTERS = [each(a_conf()) for each in (RamFilter, CoreFilter, DiskFilter)]
TAKES_NONE = {
    "down": {"last_seen": NOW - 61},
    "disabled": {"service": {"disabled": True}},
    "forced down": {"service": {"forced_down": True}},
    "not reported": {"reported": False},
    "of a cell that is left out": {"cell_uuid": "c9"},
}


def totals_of(manager):
    return {each["zone"]: each for each in fleet_of(manager).totals()}


def fleet_of(manager):
    manager.cells_left_out = ("c9",)
    return Capacity.from_manager(manager, "nova")


@pytest.fixture
def manager():
    """Two hosts in zones, one of them in both, and one in none."""
    made = a_manager()
    for name, zones in {"h1": "z1", "h2": "z1, z2", "h3": ""}.items():
        metadata = [{"availability_zone": zones}] if zones else None
        a_host(name, name, table=made.table, free_ram_mb=1024, aggregates=metadata)
    return made


def test_totals_by_zone(manager):
    totals = totals_of(manager)
    assert {zone: each["hosts"] for zone, each in totals.items()} == {
        None: 3,
        "nova": 1,
        "z1": 2,
        "z2": 1,
    }
    memory = {"physical": 4096, "capacity": 6144, "used": 3072, "free": 3072}
    assert totals["z2"]["memory_mb"] == memory
    assert totals[None]["memory_mb"] == {kind: 3 * amount for kind, amount in memory.items()}
    vcpus = {"physical": 4, "capacity": 64, "used": 0, "free": 64}
    assert totals["nova"]["vcpus"] == vcpus
    assert totals["nova"]["disk_mb"]["free"] == 100 * 1024


@pytest.mark.parametrize("why", TAKES_NONE)
def test_a_host_that_takes_no_servers_has_nothing_free(manager, why):
    a_host("h4", "h4", table=manager.table, **TAKES_NONE[why])
    found = totals_of(manager)["nova"]
    assert (found["hosts"], found["taking"]) == (2, 1)
    assert found["vcpus"] == {"physical": 8, "capacity": 128, "used": 0, "free": 64}
    [fit] = fleet_of(manager).fits([a_request().flavor])
    assert fit["zones"]["nova"] == 6


def test_strange_ratios_and_negative_room_are_numbers(manager):
    strange = {"cpu_allocation_ratio": np.inf, "disk_allocation_ratio": float("nan")}
    a_host("h4", "h4", table=manager.table, free_ram_mb=-9999, **strange)
    found = totals_of(manager)["nova"]
    assert found["memory_mb"]["free"] == 3072
    assert found["vcpus"]["capacity"] == 64 + 4 * LARGEST_RATIO
    assert found["disk_mb"]["capacity"] == 100 * 1024


@pytest.mark.parametrize(
    ("flavor", "fits", "ends_first"),
    [
        ({"memory_mb": 1024, "vcpus": 1}, 9, "memory_mb"),
        ({"memory_mb": 64, "vcpus": 4}, 48, "vcpus"),
        (
            {"memory_mb": 1, "vcpus": 1, "root_gb": 40, "ephemeral_gb": 9, "swap": 1024},
            6,
            "disk_mb",
        ),
        ({"memory_mb": 1, "vcpus": 5}, 0, "vcpus"),  # more than a host has, overcommit or not
        ({"memory_mb": 0, "vcpus": 0, "root_gb": 0}, None, None),
    ],
)
def test_what_still_fits_and_what_ends_first(manager, flavor, fits, ends_first):
    [found] = fleet_of(manager).fits([a_request(flavor=flavor).flavor])
    assert (found["fits"], found["ends_first"]) == (fits, ends_first)


def test_a_bare_metal_node_takes_one_server(manager):
    a_host("h4", "h4", table=manager.table, bare_metal=True)
    [found] = fleet_of(manager).fits([a_request(flavor={"memory_mb": 1024}).flavor])
    assert found["zones"]["nova"] == 3 + 1


@pytest.mark.parametrize("seed", range(8))
def test_as_many_fit_as_the_filters_let_in(seed):
    rng, manager = random.Random(seed), a_manager()
    states = [
        a_host(
            name,
            name,
            table=manager.table,
            free_ram_mb=rng.randrange(-2048, 4097),
            vcpus_used=rng.randrange(80),
            free_disk_mb=rng.randrange(100 * 1024),
            cpu_allocation_ratio=rng.choice([1.0, 2.5, 16.0]),
            disk_allocation_ratio=rng.choice([0.8, 1.0, 1.5]),
        )
        for name in ("h1", "h2", "h3", "h4")
    ]
    sizes = {"memory_mb": rng.randrange(1, 3000), "vcpus": rng.randrange(1, 6)}
    request = a_request(flavor={**sizes, "root_gb": rng.randrange(30), "swap": rng.randrange(99)})
    [found] = fleet_of(manager).fits([request.flavor])
    placed = 0
    for state in states:
        while not any(verdict(each, state, request) for each in FILTERS):
            taken = {"free_ram_mb": -request.flavor.memory_mb, "vcpus_used": request.flavor.vcpus}
            disk = 1024 * request.flavor.root_gb + request.flavor.swap
            manager.table.add([state.row], {**taken, "free_disk_mb": -disk})
            placed += 1
    assert found["fits"] == placed
