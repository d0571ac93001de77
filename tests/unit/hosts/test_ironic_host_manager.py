"""Bare-metal nodes: read without what nobody knows of them, taken as wholes, given back exactly."""

import datetime
import json

import pytest

from scheduler import drivers, errors, objects
from scheduler.db import compute_nodes, instances, migration, services
from scheduler.db.database import Database
from scheduler.drivers.loading import host_manager_class
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.consumption import Consumption, Fitting
from scheduler.hosts.host_manager import HostManager, IronicHostManager
from scheduler.hosts.reservations import NewtonReservations, Reservations
from tests.builders import a_conf, a_request
from tests.unit.hosts.reading import a_reader

EXACT = ["ExactRamFilter", "ExactDiskFilter", "ExactCoreFilter"]
NODE = {
    "vcpus": 8,
    "vcpus_used": 0,
    "memory_mb": 8192,
    "memory_mb_used": 0,
    "free_ram_mb": 8192,
    "local_gb": 100,
    "local_gb_used": 10,
    "free_disk_gb": 90,
    "disk_available_least": 50,
    "hypervisor_type": "ironic",
    "hypervisor_version": 1,
    "host_ip": "192.0.2.7",
    "cpu_info": "baremetal cpu",
    "numa_topology": json.dumps({"cells": [{"id": 0, "cpus": "0-7", "mem": {"total": 8192}}]}),
    "metrics": json.dumps([{"name": "cpu.percent", "value": 1, "timestamp": None, "source": "x"}]),
    "stats": {"num_instances": "3", "io_workload": "2", "boot_option": "local"},
}
TAKEN = {"free_ram_mb": 0, "free_disk_mb": 0, "vcpus_used": 8, "num_instances": 0, "num_io_ops": 0}
FREE = {**TAKEN, "free_ram_mb": 8192, "free_disk_mb": 90 * 1024, "vcpus_used": 0}
CELLS = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(id=0, cpuset={0}, memory=512)])
PCI = objects.InstancePCIRequests(
    requests=[objects.InstancePCIRequest(count=1, spec=[{"vendor_id": "8086"}])]
)
AMOUNT = Consumption(ram_mb=512, disk_mb=1024, vcpus=1)
KEY = ("metal", "m1")


def utc_now():
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)


def a_database(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/nova.sqlite")
    migration.sync(database)
    with database.write() as connection:
        services.create_many(connection, ["metal", "h1"], "nova-compute", "compute", 74)
        services.heartbeat_many(connection, [1, 2], utc_now())
        for node in ("m1", "m2"):
            compute_nodes.upsert(connection, "metal", node, NODE)
        compute_nodes.upsert(connection, "h1", "h1", {**NODE, "hypervisor_type": "QEMU"})
    return database


@pytest.fixture
def database(tmp_path):
    database = a_database(tmp_path)
    yield database
    database.dispose()


@pytest.fixture
def manager(database):
    return a_manager(a_conf(), database)


def a_manager(conf, database, reservations=Reservations):
    manager = IronicHostManager(conf, a_reader(conf, database), reservations=reservations)
    manager.refresh()
    return manager


def values(manager, names, key=KEY):
    table = manager.table
    return {name: table.value(table.rows[key], name) for name in names}


def reserve(manager, amount=AMOUNT, key=KEY, in_seconds=0):
    rows, when = [manager.table.rows[key]], manager.clock() + in_seconds
    [made] = manager.reservations.reserve(rows, [("u1", None)], amount, when)
    return made


def report(database, node="m1", host="metal", **changes):
    with database.write() as connection:
        compute_nodes.upsert(connection, host, node, {**NODE, **changes})


@pytest.mark.parametrize(
    ("name", "metal", "ordinary"),
    [
        ("total_usable_ram_mb", 8192, 8192),
        ("free_disk_mb", 90 * 1024, 50 * 1024),
        ("disk_mb_used", 0, 10 * 1024),
        ("num_instances", 0, 3),
        ("num_io_ops", 0, 2),
        ("host_ip", None, "192.0.2.7"),
        ("metrics", [], ["cpu.percent"]),
        ("vcpus_total", 8, 8),
        ("stats", NODE["stats"], NODE["stats"]),
        ("hypervisor_type", "ironic", "QEMU"),
        ("cpu_info", "baremetal cpu", "baremetal cpu"),
        ("numa_topology", None, 1),
        ("pci_stats", None, 0),
    ],
)
def test_what_is_read_of_a_node(database, manager, name, metal, ordinary):
    report(database, "h1", "h1", hypervisor_type="QEMU")
    manager.refresh()

    def read(host):
        found = getattr(manager.state_of(host), name)
        if name == "metrics":
            return [each.name for each in found]
        sized = {"numa_topology": "cells", "pci_stats": "pools"}.get(name)
        return len(getattr(found, sized)) if sized and found is not None else found

    assert (read("metal"), read("h1")) == (metal, ordinary)


@pytest.mark.parametrize("kind", ["Ironic", "IRONIC", "", "QEMU"])
def test_other_types_are_ordinary(database, manager, kind):
    report(database, hypervisor_type=kind)
    manager.refresh()
    assert values(manager, ["num_instances"]) == {"num_instances": 3}


def test_cells_and_devices_of_a_node_are_not_booked(manager):
    amount = Consumption.from_request(a_request(numa_topology=CELLS), {}, Fitting())
    assert amount.wish is not None
    made = reserve(manager, amount)
    assert values(manager, TAKEN) == TAKEN
    manager.reservations.release(made)
    assert values(manager, FREE) == FREE


def test_a_report_without_the_instance_leaves_the_node_taken(database, manager):
    made = reserve(manager)
    report(database, memory_mb=16384, free_ram_mb=16384, vcpus=16)
    manager.refresh()
    assert values(manager, TAKEN) == {**TAKEN, "vcpus_used": 16}
    manager.reservations.release(made)
    assert values(manager, FREE) == {**FREE, "free_ram_mb": 16384}


def test_a_node_that_turns_ordinary_keeps_its_reservations(database, manager):
    made = reserve(manager)
    report(database, hypervisor_type="QEMU")
    manager.refresh()
    assert values(manager, ["free_ram_mb", "vcpus_used"]) == {"free_ram_mb": 7680, "vcpus_used": 1}
    manager.reservations.release(made)
    assert values(manager, ["free_ram_mb", "vcpus_used"]) == {"free_ram_mb": 8192, "vcpus_used": 0}


def test_newton_reads_every_row_of_bare_metal(database):
    manager = a_manager(a_conf(), database, NewtonReservations)
    for key in (KEY, ("h1", "h1")):
        manager.reservations.confirm([reserve(manager, key=key, in_seconds=100)])
    report(database, free_ram_mb=4096)
    report(database, "h1", "h1", free_ram_mb=4096, hypervisor_type="QEMU")
    manager.refresh()
    assert values(manager, ["free_ram_mb"]) == {"free_ram_mb": 4096}
    assert values(manager, ["free_ram_mb"], ("h1", "h1")) == {"free_ram_mb": 8192 - 512}


def test_bare_metal_shows_no_instances(database, manager):
    uuids = {"metal": "00000000-0000-4000-a000-00000000000a"}
    uuids["h1"] = "00000000-0000-4000-a000-00000000000b"
    with database.write() as connection:
        for host, uuid in uuids.items():
            instance = objects.Instance(uuid=uuid, host=host, vm_state="active", metadata={})
            instances.create(connection, instance)
    manager.refresh()
    assert manager.state_of("metal").instances == {}
    assert list(manager.state_of("h1").instances) == [uuids["h1"]]
    hosts = Candidates(Scope(manager.table, manager.clock(), 60.0), manager.table.order)
    assert hosts.count_instances(uuids.values()).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("ironic_host_manager", IronicHostManager),
        ("nova.scheduler.ironic_host_manager.IronicHostManager", IronicHostManager),
        ("nova.scheduler.baremetal_host_manager.BaremetalHostManager", IronicHostManager),
        ("host_manager", HostManager),
    ],
)
def test_names_of_the_host_manager(name, cls):
    conf = a_conf()
    conf.set_override("host_manager", name, group="scheduler")
    assert host_manager_class(conf) is cls


@pytest.mark.parametrize(
    ("cls", "use", "expected"),
    [
        (IronicHostManager, False, ["AllHostsFilter"]),
        (IronicHostManager, True, EXACT),
        (HostManager, True, ["AllHostsFilter"]),
    ],
)
def test_filters_for_bare_metal(database, cls, use, expected):
    conf = a_conf(
        enabled_filters=["AllHostsFilter"],
        baremetal_enabled_filters=EXACT,
        use_baremetal_filters=use,
    )
    driver = drivers.load(conf, cls(conf, a_reader(conf, database)))
    assert [each.name for each in driver.settings.policy.chain.filters] == expected


def test_an_unknown_filter_is_said_to_be_in_the_option_that_names_it(database):
    conf = a_conf(baremetal_enabled_filters=["NoFilter"], use_baremetal_filters=True)
    manager = a_manager(conf, database)
    with pytest.raises(
        errors.SchedulerHostFilterNotFound,
        match=r"NoFilter.*\[filter_scheduler\] baremetal_enabled_filters",
    ):
        drivers.load(conf, manager)


def test_the_exact_filters_give_every_instance_a_node_of_its_own(database):
    conf = a_conf(use_baremetal_filters=True, baremetal_enabled_filters=EXACT)
    manager = a_manager(conf, database)
    driver = drivers.load(conf, manager)
    request = a_request(flavor={"memory_mb": 8192, "vcpus": 8, "root_gb": 90})
    uuids = [f"00000000-0000-4000-a000-00000000000{n}" for n in range(3)]

    with pytest.raises(errors.NoValidHost):
        driver.select_destinations(None, request, uuids)
    assert values(manager, FREE) == FREE
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
        (["PciPassthroughFilter"], {"pci_requests": PCI}),
        (["NUMATopologyFilter"], {"numa_topology": CELLS}),
    ],
)
def test_filters_that_ask_what_nobody_knows_of_bare_metal_remove_it(database, filters, fields):
    """In Nova some of them fail the request."""
    conf = a_conf(enabled_filters=filters)
    conf.set_override("weight_setting", ["cpu.percent=1"], group="metrics")
    driver = drivers.load(conf, a_manager(conf, database))
    request = a_request(flavor={"memory_mb": 1}, ignore_hosts=["h1"], **fields)
    with pytest.raises(errors.NoValidHost):
        driver.select_destinations(None, request, None)
    [count] = driver.records[-1].filters
    assert (count.start, sum(count.removed.values())) == (2, 2)
