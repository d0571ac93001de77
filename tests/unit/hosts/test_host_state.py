"""What Nova's names read, write and take of a row; that all is given back: test_reservations."""

import datetime
import json

import pytest

from scheduler import numa, objects
from scheduler.hosts.host_state import Consumption, Fitting
from tests.builders import NOW, a_fleet, a_host, a_request, candidates
from tests.unit.numa.builders import devices
from tests.world import random_fleets

GIVEN = {
    "uuid": "c1",
    "host_ip": "192.0.2.1",
    "hypervisor_type": "QEMU",
    "cpu_info": '{"vendor": "Intel"}',
    "stats": {"a": "1"},
    "free_ram_mb": 7,
    "disk_mb_used": 1024,
    "failed_builds": 2,
    "ram_allocation_ratio": 1.25,
    "supported_instances": [["x86_64", "kvm", "hvm"]],
}


def test_attributes_are_those_of_the_row():
    more = {"instances": ["u1"], "service": {"id": 7}, "updated_at": NOW}
    state = a_host(**GIVEN, **more, aggregates=[{"ssd": "yes"}])
    silent = a_host(updated_at=float("-inf"))

    assert {name: getattr(state, name) for name in GIVEN} == GIVEN
    assert (state.host, state.nodename, state.hypervisor_hostname) == ("h1", "n1", "n1")
    assert (type(state.free_ram_mb), type(state.ram_allocation_ratio)) == (int, float)
    assert [each.metadata for each in state.aggregates] == [{"ssd": "yes"}]
    assert (state.service["id"], state.service["disabled"]) == (7, False)
    assert (list(state.instances), state.limits) == (["u1"], {})
    assert state.updated == datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    assert (silent.updated, silent.instances, silent.aggregates) == (None, {}, [])
    assert a_host(instances=["u1"], bare_metal=True).instances == {}
    assert repr(state) == "(h1, n1) ram: 7MB disk: 102400MB io_ops: 0 instances: 0"


def test_writing_goes_to_the_table():
    table = a_fleet({}, {})
    first, second = candidates(table).states()

    first.free_ram_mb -= 4000
    first.host_ip = "192.0.2.1"
    first.stats = '{"b": "2"}'

    assert candidates(table).free_ram_mb.tolist() == [96, 4096]
    assert (first.host_ip, second.host_ip) == ("192.0.2.1", None)
    assert (first.stats, second.stats) == ({"b": "2"}, {})
    with pytest.raises(TypeError):
        first.service["disabled"] = True


#: Every attribute that Nova's releases have, by section 6.1 of the scheduling page.
OF_NOVA = """
    host nodename uuid cell_uuid total_usable_ram_mb free_ram_mb total_usable_disk_gb disk_mb_used
    free_disk_mb vcpus_total vcpus_used num_instances num_io_ops failed_builds stats metrics
    pci_stats numa_topology host_ip hypervisor_type hypervisor_version hypervisor_hostname cpu_info
    supported_instances cpu_allocation_ratio ram_allocation_ratio disk_allocation_ratio limits
    aggregates instances service updated allocation_candidates _lock_name capabilities
"""


@pytest.mark.parametrize("name", OF_NOVA.split())
def test_every_attribute_of_novas_is_there(name):
    assert hasattr(a_host(), name)


def test_cells_are_novas_object():
    state = a_host(numa_topology=random_fleets.TOPOLOGY)

    assert [cell.cpuset for cell in state.numa_topology.cells] == [{0, 1, 2, 3}, {4, 5, 6, 7}]
    topology = state.numa_topology
    topology.cells[0].pinned_cpus = {0}
    state.numa_topology = topology
    assert state.numa_topology.cells[0].pinned_cpus == {0}
    state.numa_topology = None
    assert state.numa_topology is None


def test_devices_are_asked_about_as_novas():
    stats = a_host(numa_topology=random_fleets.TOPOLOGY, pci_stats=random_fleets.POOLS).pci_stats
    spec = [{"vendor_id": "8086", "product_id": "10ed"}]
    request = objects.InstancePCIRequest(count=3, spec=spec, numa_policy="required")
    near, far = (objects.InstanceNUMACell(id=number) for number in (0, 1))

    assert [pool["count"] for pool in stats.pools] == [3, 1]
    assert [pool.count for pool in stats.to_device_pools_obj()] == [3, 1]
    assert stats.support_requests([request])
    assert not stats.support_requests([request, request])
    assert stats.support_requests([request], [near])
    assert not stats.support_requests([request], [far])
    assert bool(a_host(pci_stats="[]").pci_stats) is True
    assert a_host().pci_stats is None
    assert "10ed" in repr(stats)


# --- cells and devices ------------------------------------------------------------------------

ONE_NIC = {"vendor_id": "8086", "product_id": "10ed", "count": 1}


@pytest.mark.parametrize("nothing", [None, objects.InstancePCIRequests(requests=[])])
def test_a_request_without_cells_and_devices_wishes_for_nothing(nothing):
    topology = nothing and numa.GuestTopology().to_object()
    request = a_request(numa_topology=topology, pci_requests=nothing)
    assert Consumption.from_request(request, {}, Fitting()).wish is None


def test_what_cannot_be_taken_is_logged_and_counts_no_io(caplog):
    state = a_host(pci_stats=json.dumps([ONE_NIC]))
    state.consume_from_request(a_request(pci_requests=devices(2)))
    assert (state.num_instances, state.num_io_ops) == (1, 0)
    assert "Selected host: h1 failed to consume from instance." in caplog.text
    assert [pool["count"] for pool in state.pci_stats.pools] == [1]
