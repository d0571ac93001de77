"""Claims on NUMA cells and PCI devices, which every worker gives out anew from the same rows."""

import json

import pytest
import sqlalchemy as sa

from scheduler import errors
from scheduler.db import tables
from tests.builders import a_request
from tests.unit.claims.fleets import Context, a_name
from tests.unit.numa.builders import devices, guest, want
from tests.world import random_fleets

FILTERS = ("NUMATopologyFilter", "PciPassthroughFilter")
#: Of the eight CPUs of a host; and of its devices.
PINNED, PER_HOST = guest(want(range(2), "dedicated")), 4
GPUS = json.dumps([{"vendor_id": "10de", "product_id": "1db4", "numa_node": 1, "count": 2}])


@pytest.fixture
def numa_fleet(fleet):
    """Hosts of two cells of four CPUs, with two devices each."""
    with fleet.database.write() as conn:
        conn.execute(
            tables.compute_nodes.update().values(
                numa_topology=random_fleets.TOPOLOGY, pci_stats=GPUS
            )
        )
    return fleet


def select(worker, request_id, name, gpus=0):
    spec = a_request(flavor={"memory_mb": 1, "root_gb": 0}, numa_topology=PINNED.to_object())
    if gpus:
        spec.pci_requests = devices(gpus, "10de")
    ((chosen, *_rest),) = worker.driver.select_destinations(Context(request_id), spec, [name])
    return chosen.service_host


def given_out(worker):
    """Per host the pinned CPUs and the devices left, as *worker* knows them."""
    worker.manager.refresh()
    table = worker.manager.table
    found = {}
    for (host, _node), row in table.rows.items():
        topology, pools = table.value(row, "numa_topology"), table.value(row, "pci_stats")
        cpus = sorted(cpu for cell in topology.cells for cpu in cell.pinned)
        found[host] = cpus, sum(pool.count for pool in pools.pools)
    return found


@pytest.mark.parametrize(
    ("gpus", "per_host"),
    [pytest.param(0, PER_HOST, id="cells"), pytest.param(1, 2, id="cells and devices")],
)
def test_workers_share_cells_and_devices_to_the_last(numa_fleet, worker, gpus, per_host):
    workers = [worker(filters=FILTERS), worker(filters=FILTERS)]
    count = per_host * len(numa_fleet.hosts)
    chosen = [
        select(workers[number % 2], f"req-{number}", a_name(), gpus) for number in range(count)
    ]
    assert sorted(chosen) == sorted(numa_fleet.hosts * per_host)
    for each in workers:
        with pytest.raises(errors.NoValidHost):
            select(each, f"req-last-{id(each)}", a_name(), gpus)
    first, second = map(given_out, workers)
    assert first == second
    assert {len(cpus) for cpus, _left in first.values()} == {2 * per_host}
    assert {left for _cpus, left in first.values()} == {2 - gpus * per_host}


def test_a_decision_on_cells_that_are_gone_by_now_goes_elsewhere(numa_fleet, worker):
    one, two = worker(filters=FILTERS), worker(filters=FILTERS)
    names = [a_name() for _number in range(2 * PER_HOST)]
    for number, name in enumerate(names[:-1]):
        select(one, f"req-{number}", name, gpus=0)
    full = {host for host, (cpus, _left) in given_out(two).items() if len(cpus) == 8}
    with numa_fleet.database.read() as conn:
        rows = conn.execute(sa.text("SELECT numa_topology, pci_requests FROM claims")).all()
    assert all(cells_text and not devices for cells_text, devices in rows)
    assert select(two, "req-two", names[-1]) not in full
    assert len(numa_fleet.claims()) == len(names)


def test_a_claim_gives_its_cells_and_devices_back(numa_fleet, worker, clock):
    one, two, name = worker(filters=FILTERS), worker(filters=FILTERS), a_name()
    before = given_out(two)
    numa_fleet.wait_for_host(name, 1)
    select(one, "req-1", name, gpus=2)
    assert given_out(two) != before
    numa_fleet.fail(name)
    clock.ahead_seconds += 3
    assert given_out(two) == given_out(one) == before
