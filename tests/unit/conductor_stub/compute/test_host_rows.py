"""One host's rows: whatever happens, its sums are those of its instances."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
from typing import Any

import pytest

from conductor_stub.compute import profiles
from conductor_stub.compute.host_rows import HostRows
from conductor_stub.compute.node_report import DEVICES_KEY, NodeReport
from scheduler import errors, objects
from scheduler.db import compute_nodes, groups, instances
from scheduler.db.database import Database
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.compute.fleets import an_instance
from tests.unit.db.builders import delete_host
from tests.unit.numa.builders import guest, want

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
LIMITS = {"memory_mb": 1536, "disk_gb": 100, "vcpu": 64}
GPU = profiles.PciPool("10de", "1db4", 1)


def a_host(database: Database, name: str = "h1", **kind: Any) -> HostRows:
    """A registered host of 4 vCPUs, 2048 MB (512 of them reserved) and 100 GB."""
    plan = profiles.HostPlan(name, profiles.HostKind("k", 4, 2048, 100, **kind))
    rows = HostRows(database, NodeReport(plan, builders.conf(), lambda: NOW))
    with database.write() as conn:
        compute_nodes.upsert_many(conn, [rows.new_row(conn)])
    return rows


def node_of(database: Database, host: str = "h1") -> objects.ComputeNode:
    with database.read() as conn:
        return compute_nodes.get(conn, host, host)


def read(database: Database, uuid: str) -> objects.Instance:
    with database.read() as conn:
        return instances.get(conn, uuid)


def sums(database: Database, host: str = "h1") -> tuple[int, int, int, int]:
    """(vcpus, MB, GB, instances) used, after checking that they are those of the instances."""
    node = node_of(database, host)
    with database.read() as conn:
        present = instances.list_all(conn, host=host)
    assert node.vcpus_used == sum(each.vcpus for each in present)
    assert node.memory_mb_used == 512 + sum(each.memory_mb for each in present)
    assert node.local_gb_used == sum(each.root_gb + each.ephemeral_gb for each in present)
    assert node.free_ram_mb == node.memory_mb - node.memory_mb_used
    assert node.free_disk_gb == node.local_gb - node.local_gb_used
    assert node.running_vms == len(present) == int(node.stats["num_instances"])
    return node.vcpus_used, node.memory_mb_used, node.local_gb_used, node.running_vms


def test_a_new_row_has_every_default_and_its_documents(database):
    a_host(database, stats={"gpu": "no"}, metrics={"cpu.percent": 0.5})
    node = node_of(database)
    assert (node.vcpus, node.memory_mb, node.local_gb) == (4, 2048, 100)
    assert (node.cpu_allocation_ratio, node.ram_allocation_ratio) == (16.0, 1.5)
    counters = dict.fromkeys(("num_instances", "io_workload", "failed_builds"), "0")
    assert node.stats == {"gpu": "no", **counters}
    assert json.loads(node.metrics)[0]["timestamp"] == "2026-01-02T03:04:05"
    assert json.loads(node.cpu_info)["topology"]["cores"] == 4
    assert node.supported_hv_specs[0].to_list() == ["x86_64", "qemu", "hvm"]
    assert sums(database) == (0, 512, 0, 0)


def test_the_life_of_an_instance(database):
    host, uuid = a_host(database), an_instance(database).uuid
    assert host.claim(uuid, LIMITS)
    row, node = read(database, uuid), node_of(database)
    assert (row.host, row.node, row.launched_on, row.compute_id) == ("h1", "h1", "h1", node.id)
    assert (row.vm_state, row.task_state) == ("building", "spawning")
    assert (node.current_workload, node.stats["io_workload"]) == (1, "1")
    assert node.updated_at.replace(tzinfo=None) == NOW
    assert sums(database) == (1, 1024, 10, 1)

    assert host.activate(uuid).flavor.name == "small"
    row, node = read(database, uuid), node_of(database)
    assert (row.vm_state, row.task_state, row.power_state) == ("active", None, 1)
    assert row.launched_at.replace(tzinfo=None) == NOW
    assert (node.current_workload, node.stats["io_workload"]) == (0, "0")
    assert sums(database) == (1, 1024, 10, 1)
    assert [each.uuid for each in host.present()] == [uuid]

    for _once_more in range(2):
        assert host.destroy(uuid) is None
        assert sums(database) == (0, 512, 0, 0)
    with pytest.raises(errors.InstanceNotFound):
        read(database, uuid)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"task_state": None}, True),
        ({"task_state": "deleting"}, False),
        ({"task_state": "spawning", "host": "h2"}, False),
        ({"task_state": None, "vm_state": "active", "host": "h1"}, False),
        ({"task_state": None, "vm_state": "error"}, False),
    ],
)
def test_only_an_instance_that_waits_is_taken(database, changes, expected):
    host, instance = a_host(database), an_instance(database, **changes)
    assert host.claim(instance.uuid, LIMITS) is expected
    host.audit()
    sums(database)
    if not expected:
        row = read(database, instance.uuid)
        assert (row.host, row.task_state) == (changes.get("host"), changes["task_state"])


@pytest.mark.parametrize("limits", [{"memory_mb": 1023}, {"disk_gb": 9}, {"vcpu": 0}], ids=str)
def test_a_refusal_changes_nothing(database, limits):
    host, instance = a_host(database), an_instance(database)
    with pytest.raises(errors.ComputeResourcesUnavailable):
        host.claim(instance.uuid, limits)
    assert read(database, instance.uuid).host is None
    assert sums(database) == (0, 512, 0, 0)
    assert host.claim(instance.uuid, {name: value + 1 for name, value in limits.items()})


def test_claims_at_the_same_moment_never_break_a_limit(database):
    host = a_host(database)
    uuids = [an_instance(database).uuid for _ in range(6)]

    def claim(uuid: str) -> bool:
        try:
            return host.claim(uuid, {"memory_mb": 2048})
        except errors.ComputeResourcesUnavailable:
            return False

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(claim, uuids))
    assert sum(taken) == 3
    assert sums(database) == (3, 2048, 30, 3)


def test_two_claims_of_one_instance_take_it_once(database):
    hosts = [a_host(database, name) for name in ("h1", "h2", "h3")]
    uuid = an_instance(database).uuid
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        taken = list(pool.map(lambda host: host.claim(uuid, {}), hosts))
    assert sorted(taken) == [False, False, True]
    assert sum(sums(database, host.host)[3] for host in hosts) == 1


def test_an_instance_deleted_during_its_build_leaves_nothing(database):
    host, instance = a_host(database), an_instance(database)
    host.claim(instance.uuid, LIMITS)
    with database.write() as conn:
        instances.destroy(conn, instance.uuid)
    assert host.activate(instance.uuid) is None
    assert sums(database) == (0, 512, 0, 0)
    assert host.give_up(instance.uuid) is None


def test_failures_free_and_are_counted_until_a_build_succeeds(database):
    host, uuid = a_host(database), an_instance(database).uuid
    for failures in ("1", "2"):
        assert host.claim(uuid, LIMITS)
        released = host.give_up(uuid)
        assert (released.host, released.node, released.compute_id) == (None, None, None)
        assert (released.vm_state, released.task_state) == ("building", "scheduling")
        assert sums(database) == (0, 512, 0, 0)
        assert node_of(database).stats["failed_builds"] == failures
    host.claim(uuid, {})
    assert node_of(database).stats["failed_builds"] == "2"
    host.activate(uuid)
    assert node_of(database).stats["failed_builds"] == "0"


def test_a_final_failure_is_an_error_with_its_fault(database):
    host, instance = a_host(database), an_instance(database)
    host.claim(instance.uuid, LIMITS)
    assert host.give_up(instance.uuid, errors.NovaException("no luck")) is not None
    row = read(database, instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
    with database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert (fault.code, fault.message, fault.host) == (500, "no luck", "h1")
    assert sums(database) == (0, 512, 0, 0)


def test_another_hosts_instance_is_not_destroyed(database):
    here, there = a_host(database), a_host(database, "h2")
    instance = an_instance(database)
    there.claim(instance.uuid, {})
    assert here.destroy(instance.uuid).host == "h2"
    assert sums(database, "h2")[3] == 1


def test_an_audit_repairs_what_was_written_from_outside(database):
    host, instance = a_host(database), an_instance(database)
    host.claim(instance.uuid, LIMITS)
    node_id = node_of(database).id
    with database.write() as conn:
        compute_nodes.update_usage(conn, node_id, {"vcpus_used": 99, "memory_mb": 1})
    host.audit()
    assert node_of(database).memory_mb == 2048
    assert sums(database) == (1, 1024, 10, 1)


def test_a_node_deleted_under_a_running_host_comes_back(database):
    host, instance = a_host(database), an_instance(database)
    with database.write() as conn:
        delete_host(conn, "h1")
    assert host.claim(instance.uuid, LIMITS)
    assert sums(database) == (1, 1024, 10, 1)


def test_devices_are_claimed_and_freed(database):
    host = a_host(database, pci_pools=(GPU,))
    request = objects.InstancePCIRequest(count=1, spec=[{"vendor_id": "10de"}], alias_name="gpu")
    wish = objects.InstancePCIRequests(requests=[request])
    first, second = (an_instance(database, pci_requests=wish).uuid for _ in range(2))
    assert host.claim(first, {})
    assert list(node_of(database).pci_device_pools) == []
    with pytest.raises(errors.ComputeResourcesUnavailable, match="PCI devices gpu"):
        host.claim(second, {})
    host.give_up(first)
    assert read(database, first).system_metadata[DEVICES_KEY] is None
    assert node_of(database).pci_device_pools[0].count == 1
    assert host.claim(second, {})


def test_cells_are_claimed_reported_and_freed(database):
    cell = profiles.NumaCell(frozenset(range(4)), 2048)
    host = a_host(database, numa_cells=(cell,))
    wish = guest(want(range(2), "dedicated", memory_mb=512)).to_object()
    first, second, third = (an_instance(database, numa_topology=wish).uuid for _ in range(3))

    assert host.claim(first, {})
    assert host.claim(second, {})
    with pytest.raises(errors.ComputeResourcesUnavailable, match="1 NUMA cells requested"):
        host.claim(third, {})
    topologies = [read(database, uuid).numa_topology for uuid in (first, second)]
    assert [each.cells[0].cpu_pinning for each in topologies] == [{0: 0, 1: 1}, {0: 2, 1: 3}]
    [reported] = objects.NUMATopology.from_text(node_of(database).numa_topology).cells
    assert (reported.pinned_cpus, reported.memory_usage) == ({0, 1, 2, 3}, 1024)

    released = host.give_up(first)
    assert released.numa_topology.cells[0].cpu_pinning is None
    host.audit()
    [reported] = objects.NUMATopology.from_text(node_of(database).numa_topology).cells
    assert (reported.pinned_cpus, reported.memory_usage) == ({2, 3}, 512)
    assert host.claim(third, {})
    assert read(database, third).numa_topology.cells[0].cpu_pinning == {0: 0, 1: 1}


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
    hosts = {name: a_host(database, name) for name in ("h1", "h2")}
    present = [an_instance(database).uuid for _ in others]
    for uuid, name in zip(present, others, strict=True):
        hosts[name].claim(uuid, {})
    newcomer = an_instance(database).uuid
    with database.write() as conn:
        group = groups.create(conn, "g", policy, rules)
        groups.add_members(conn, group.uuid, [*present, newcomer])
    if fits:
        assert hosts["h1"].claim(newcomer, {})
        return
    with pytest.raises(errors.ComputeResourcesUnavailable, match="affinity group g"):
        hosts["h1"].claim(newcomer, {})
    assert read(database, newcomer).host is None
