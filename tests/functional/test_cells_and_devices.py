"""Pinned servers and servers with devices, on hosts of the NUMA profile: all programs, a broker."""

import json
from collections import Counter
from typing import Any

import pytest

from conductor_stub.compute import profiles
from scheduler import objects
from scheduler.db import compute_nodes, instances
from scheduler.db.database import Database
from tests.world.booting import boot, delete, hosts, states
from tests.world.deployment import Deployment

PROFILE = profiles.DEFAULT_FILE.with_name("numa_pci.yaml")
ALIAS = {"name": "gpu", "vendor_id": "10de", "product_id": "1db4", "numa_policy": "required"}
SETTINGS = {
    "DEFAULT": {"reserved_host_memory_mb": 0},
    "filter_scheduler": {
        "enabled_filters": "ComputeFilter,NUMATopologyFilter,PciPassthroughFilter"
    },
    "pci": {"alias": [json.dumps(ALIAS)]},
}
PINNED = ("hw:cpu_policy=dedicated", "hw:mem_page_size=2048")
WITH_GPU = ("hw:cpu_policy=dedicated", "pci_passthrough:alias=gpu:1")


def make_flavor(cloud: Deployment, name: str, *properties: str) -> str:
    words = [word for each in properties for word in ("--property", each)]
    sizes = ("--vcpus", "4", "--ram", "1024", "--disk", "1")
    cloud.command("nova-scheduler-manage", "flavor", "create", name, *sizes, *words)
    return name


def guests(database: Database, servers: list[dict[str, Any]]) -> list[objects.Instance]:
    with database.read() as conn:
        return [instances.get(conn, each["id"]) for each in servers]


def cells_of(database: Database) -> dict[str, list[objects.NUMACell]]:
    with database.read() as conn:
        nodes = compute_nodes.list_all(conn)
    found = {node.host: objects.NUMATopology.from_text(node.numa_topology) for node in nodes}
    return {host: list(topology.cells) for host, topology in found.items() if topology}


def gpus_left(database: Database) -> int:
    with database.read() as conn:
        nodes = compute_nodes.list_all(conn)
    return sum(
        pool.count
        for node in nodes
        for pool in node.pci_device_pools or ()
        if pool.vendor_id == ALIAS["vendor_id"]
    )


@pytest.fixture(scope="module")
def cloud(on_sqlite):
    """Six hosts, which each test leaves empty."""
    with on_sqlite(settings=SETTINGS) as made:
        yield made.start(6, "--profile", str(PROFILE), "--build-seconds", "0")


@pytest.fixture
def database(cloud):
    with cloud.database() as made:
        yield made


def test_pinned_servers_fill_the_cells_and_leave_them(cloud, database):
    pinned = make_flavor(cloud, "pinned", *PINNED)

    too_many = boot(cloud, pinned, "--count", "13")
    servers = boot(cloud, pinned, "--count", "12")
    one_more = boot(cloud, pinned)

    assert (states(too_many), states(one_more)) == ({"ERROR"}, {"ERROR"})
    assert states(servers) == {"ACTIVE"}
    assert {each["attempts"] for each in servers} == {1}, "the scheduler knew what would fit"
    assert set(Counter(hosts(servers)).values()) == {4}
    taken = Counter()
    for guest in guests(database, servers):
        [cell] = guest.numa_topology.cells
        assert cell.pagesize == 2048
        taken.update((guest.host, cpu) for cpu in cell.cpu_pinning.values())
    assert set(taken.values()) == {1}, "no CPU has two guests"
    full = {host: cells for host, cells in cells_of(database).items() if host in hosts(servers)}
    assert len(full) == 3
    for cells in full.values():
        assert all(cell.pinned_cpus == cell.pcpuset for cell in cells)
        assert [page.used for cell in cells for page in cell.mempages] == [0, 1024] * 2

    delete(cloud, servers + too_many + one_more)
    for cells in cells_of(database).values():
        assert all(cell.pinned_cpus == set() and cell.memory_usage == 0 for cell in cells)


def test_devices_and_the_cells_near_them(cloud, database):
    with_gpu = make_flavor(cloud, "with-gpu", *WITH_GPU)

    servers = boot(cloud, with_gpu, "--count", "2")
    one_more = boot(cloud, with_gpu)

    assert (states(servers), states(one_more)) == ({"ACTIVE"}, {"ERROR"})
    assert len(set(hosts(servers))) == 1
    assert {guest.numa_topology.cells[0].id for guest in guests(database, servers)} == {0}
    assert gpus_left(database) == 0
    delete(cloud, servers[:1])
    assert gpus_left(database) == 1
    another = boot(cloud, with_gpu)
    assert states(another) == {"ACTIVE"}
    delete(cloud, servers[1:] + one_more + another)
