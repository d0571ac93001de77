"""What a host's rows hold besides sums: documents, cells and devices, and groups that are kept."""

import datetime
import json
from contextlib import nullcontext

import pytest

from conductor_stub import server_rows
from conductor_stub.compute import profiles, registration
from conductor_stub.compute.host_rows import HostRows
from conductor_stub.compute.node_report import DEVICES_KEY, NodeReport
from scheduler import errors, objects
from scheduler.db import compute_nodes, groups, instances
from scheduler.pci.devices import Pools
from tests.builders import a_conf
from tests.unit.conductor_stub.compute.fleets import an_instance
from tests.unit.numa.builders import guest, want

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
GPU = profiles.PciPool("10de", "1db4", 1)
CELL = profiles.NumaCell(frozenset(range(4)), 2048)


def a_host(database, **kind):
    """A registered host of 4 vCPUs, 2048 MB (512 of them reserved) and 100 GB."""
    plan = profiles.HostPlan("h1", profiles.HostKind("k", 4, 2048, 100, **kind))
    rows = HostRows(database, NodeReport(plan, a_conf(), lambda: NOW))
    with database.write() as conn:
        registration.put_nodes(conn, [rows.new_row(conn)])
    return rows


def node_of(database):
    with database.read() as conn:
        return compute_nodes.list_all(conn, "h1")[0]


def read(database, uuid):
    with database.read() as conn:
        return instances.get(conn, uuid)


def test_a_new_row_has_every_default_and_its_documents(database):
    a_host(database, stats={"gpu": "no"}, metrics={"cpu.percent": 0.5})
    node = node_of(database)
    assert (node.vcpus, node.memory_mb, node.local_gb) == (4, 2048, 100)
    assert (node.cpu_allocation_ratio, node.ram_allocation_ratio) == (16.0, 1.5)
    counters = dict.fromkeys(("num_instances", "io_workload", "failed_builds"), "0")
    assert json.loads(node.stats) == {"gpu": "no", **counters}
    assert json.loads(node.metrics)[0]["timestamp"] == "2026-01-02T03:04:05"
    assert json.loads(node.cpu_info)["topology"]["cores"] == 4
    assert json.loads(node.supported_instances)[0][0] == "x86_64"


def test_a_build_is_noted_with_its_times(database):
    host, uuid = a_host(database), an_instance(database).uuid
    assert host.claim(uuid, {})
    row, node = read(database, uuid), node_of(database)
    assert (row.launched_on, row.compute_id) == ("h1", node.id)
    assert (json.loads(node.stats)["io_workload"], node.updated_at) == ("1", NOW)
    assert host.activate(uuid).flavor.name == "small"
    row = read(database, uuid)
    assert (row.power_state, row.launched_at.replace(tzinfo=None)) == (1, NOW)
    assert json.loads(node_of(database).stats)["io_workload"] == "0"
    assert [each.uuid for each in host.present()] == [uuid]


def test_cells_and_devices_are_claimed_reported_and_freed(database):
    host = a_host(database, pci_pools=(GPU,), numa_cells=(CELL,))
    request = objects.InstancePCIRequest(count=1, spec=[{"vendor_id": "10de"}], alias_name="gpu")
    gpu = objects.InstancePCIRequests(requests=[request])
    cell = guest(want(range(2), "dedicated", memory_mb=512)).to_object()
    first = an_instance(database, numa_topology=cell, pci_requests=gpu).uuid
    again = an_instance(database, pci_requests=gpu).uuid
    second, third = (an_instance(database, numa_topology=cell).uuid for _ in range(2))

    def reported():
        node = node_of(database)
        [left] = objects.NUMATopology.from_text(node.numa_topology).cells
        pools = Pools.from_text(node.pci_stats).pools
        return left.pinned_cpus, left.memory_usage, [pool.count for pool in pools]

    def pinned(uuid):
        return read(database, uuid).numa_topology.cells[0].cpu_pinning

    assert host.claim(first, {})
    with pytest.raises(errors.ComputeResourcesUnavailable, match="PCI devices gpu"):
        host.claim(again, {})
    assert host.claim(second, {})
    with pytest.raises(errors.ComputeResourcesUnavailable, match="1 NUMA cells requested"):
        host.claim(third, {})
    assert (pinned(first), pinned(second)) == ({0: 0, 1: 1}, {0: 2, 1: 3})
    assert reported() == ({0, 1, 2, 3}, 1024, [])

    assert host.give_up(first).numa_topology.cells[0].cpu_pinning is None
    assert read(database, first).system_metadata[DEVICES_KEY] is None
    assert reported() == ({2, 3}, 512, [1])
    assert host.claim(again, {})
    assert host.claim(third, {})
    assert pinned(third) == {0: 0, 1: 1}


@pytest.mark.parametrize(
    ("policy", "rules", "others", "fits"),
    [
        ("anti-affinity", None, ["h2"], True),
        ("anti-affinity", None, ["h1"], False),
        ("anti-affinity", {"max_server_per_host": 2}, ["h1"], True),
        ("anti-affinity", {"max_server_per_host": 2}, ["h1", "h1"], False),
        ("affinity", None, [], True),
        ("affinity", None, ["h1"], True),
        ("affinity", None, ["h2"], False),
        ("soft-anti-affinity", None, ["h1"], True),
        ("soft-affinity", None, ["h2"], True),
    ],
)
def test_the_groups_policy_is_checked_once_more(database, policy, rules, others, fits):
    host = a_host(database)
    present = [an_instance(database, host=name, vm_state="active").uuid for name in others]
    newcomer = an_instance(database).uuid
    with database.write() as conn:
        group = groups.create(conn, "g", policy, rules)
        server_rows.join_group(conn, group.uuid, [*present, newcomer])
    refusal = pytest.raises(errors.ComputeResourcesUnavailable, match="affinity group g")
    with nullcontext() if fits else refusal:
        assert host.claim(newcomer, {})
    assert read(database, newcomer).host == ("h1" if fits else None)
