"""Bare metal decided on as wholes; as it is read: test_rows, as it is taken: test_reservations."""

import json

import pytest

from scheduler import drivers, errors, objects
from scheduler.drivers.loading import host_manager_class
from scheduler.hosts.host_manager import HostManager, IronicHostManager
from scheduler.replay.row_fleet import RowFleet, moment
from tests.builders import a_conf, a_request
from tests.unit.evaluation.builders import EARLIER, a_node, a_service
from tests.unit.numa.builders import devices

EXACT = ["ExactRamFilter", "ExactDiskFilter", "ExactCoreFilter"]
METRICS = [{"name": "cpu.percent", "value": 1, "timestamp": None, "source": "x"}]
NODE = {
    "hypervisor_type": "ironic",
    "host_ip": "192.0.2.7",
    "numa_topology": json.dumps({"cells": [{"id": 0, "cpus": "0-7", "mem": {"total": 8192}}]}),
    "metrics": json.dumps(METRICS),
}
CELLS = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(id=0, cpuset={0}, memory=512)])


def a_manager(conf, kind=IronicHostManager):
    nodes = [a_node("metal", number, hypervisor_hostname=f"m{number}", **NODE) for number in (1, 2)]
    nodes.append(a_node("h1", 3, **{**NODE, "hypervisor_type": "QEMU"}))
    services = [a_service(host) for host in ("metal", "h1")]
    fleet = RowFleet({"compute_nodes": nodes, "services": services})
    return kind(conf, fleet, (moment(EARLIER) - moment("1970-01-01")).total_seconds)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ironic_host_manager", IronicHostManager),
        ("nova.scheduler.ironic_host_manager.IronicHostManager", IronicHostManager),
        ("nova.scheduler.baremetal_host_manager.BaremetalHostManager", IronicHostManager),
        ("host_manager", HostManager),
    ],
)
def test_names_of_the_host_manager(name, kind):
    conf = a_conf(scheduler__host_manager=name)
    assert host_manager_class(conf) is kind


@pytest.mark.parametrize(
    ("kind", "use", "expected"),
    [
        (IronicHostManager, False, ["AllHostsFilter"]),
        (IronicHostManager, True, EXACT),
        (HostManager, True, ["AllHostsFilter"]),
    ],
)
def test_filters_for_bare_metal(kind, use, expected):
    conf = a_conf(
        enabled_filters=["AllHostsFilter"],
        baremetal_enabled_filters=EXACT,
        use_baremetal_filters=use,
    )
    driver = drivers.load(conf, a_manager(conf, kind))
    assert [each.name for each in driver.settings.policy.chain.filters] == expected


def test_the_exact_filters_give_every_instance_a_node_of_its_own():
    conf = a_conf(use_baremetal_filters=True, baremetal_enabled_filters=EXACT)
    driver = drivers.load(conf, a_manager(conf))
    request = a_request(flavor={"memory_mb": 8192, "vcpus": 8, "root_gb": 100}, ignore_hosts=["h1"])
    uuids = [f"00000000-0000-4000-a000-00000000000{n}" for n in range(3)]

    with pytest.raises(errors.NoValidHost):
        driver.select_destinations(None, request, uuids)
    answer = driver.select_destinations(None, request, uuids[:2])

    assert sorted(first.nodename for first, *_others in answer) == ["m1", "m2"]
    assert answer[0][0].limits_exact == {"memory_mb": 8192, "disk_gb": 100, "vcpu": 8}
    with pytest.raises(errors.NoValidHost):
        driver.select_destinations(None, request, uuids[2:])


@pytest.mark.parametrize(
    ("filters", "fields"),
    [
        (["MetricsFilter"], {}),
        (["SimpleCIDRAffinityFilter"], {"hints": {"build_near_host_ip": ["192.0.2.7"]}}),
        (["PciPassthroughFilter"], {"pci_requests": devices(1)}),
        (["NUMATopologyFilter"], {"numa_topology": CELLS}),
    ],
)
def test_filters_that_ask_what_nobody_knows_of_bare_metal_remove_it(filters, fields):
    """In Nova some of them fail the request."""
    conf = a_conf(enabled_filters=filters, metrics__weight_setting=["cpu.percent=1"])
    driver = drivers.load(conf, a_manager(conf))
    request = a_request(flavor={"memory_mb": 1}, ignore_hosts=["h1"], **fields)
    with pytest.raises(errors.NoValidHost):
        driver.select_destinations(None, request, None)
    [count] = driver.recorder.records[-1].filters
    assert (count.start, sum(count.removed.values())) == (2, 2)
