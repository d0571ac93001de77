"""For each prepared refusal the first line of ``explain`` names the true cause."""

import pytest

from scheduler import errors, objects
from scheduler.conf.filter_scheduler import PLACEMENT_FILTERS
from scheduler.manager import SchedulerManager
from tests.builders import a_conf, a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet, a_service
from tests.unit.explain.asking import UUID, Context, printed, told

FILTERS = [
    *("AvailabilityZoneFilter", "RamFilter", "CoreFilter", "DiskFilter", "ComputeFilter"),
    *("IoOpsFilter", "AggregateInstanceExtraSpecsFilter", *PLACEMENT_FILTERS[1:]),
    *("NUMATopologyFilter", "PciPassthroughFilter"),
]
LONG_AGO = "2026-11-20T20:00:00Z"


def an_aggregate(number, hosts, **metadata):
    return {
        "id": number,
        "uuid": f"00000000-0000-4000-9000-00000000000{number}",
        "name": f"agg{number}",
        "hosts": hosts,
        "metadata": metadata,
    }


def pinned():
    cell = objects.InstanceNUMACell(id=0, cpuset={0, 1}, memory=1024)
    return objects.InstanceNUMATopology(cells=[cell])


def a_device():
    spec = [{"vendor_id": "8086", "product_id": "154d"}]
    request = objects.InstancePCIRequest(count=2, spec=spec, alias_name="fast-nic")
    return objects.InstancePCIRequests(requests=[request])


def zoned(**services):
    """Three hosts: h1 and h2 in zone az1, h3 in zone az2."""
    aggregates = [
        an_aggregate(1, ["h1", "h2"], availability_zone="az1", ssd="false"),
        an_aggregate(2, ["h3"], availability_zone="az2", ssd="true"),
    ]
    hosts = ("h1", "h2", "h3")
    rows = [a_service(host, **services.get(host, {})) for host in hosts]
    return a_fleet(3900, 1000, 8192, aggregates=aggregates, services=rows)


DISABLED = {"disabled": True, "disabled_reason": "kernel upgrade"}
DEAD = {"last_seen_up": LONG_AGO, "updated_at": LONG_AGO}

# What is wrong → the fleet, the request, and what the first line must say.
REFUSALS = {
    "memory in the zone": (
        zoned(), {"flavor": {"memory_mb": 4096}, "availability_zone": "az1"},
        ("RamFilter removed the last 2 of 3", "4096 MiB", "(h1) has 3900 MiB free",
         "AvailabilityZoneFilter 1")),
    "memory anywhere": (
        zoned(), {"flavor": {"memory_mb": 65536}},
        ("RamFilter removed all 3 hosts", "65536 MiB", "8192 MiB in all")),
    "vcpus": (
        zoned(), {"flavor": {"vcpus": 9}}, ("CoreFilter removed all 3", "9 vCPUs", "has 8 in all")),
    "disk": (
        zoned(), {"flavor": {"root_gb": 101}},
        ("DiskFilter removed all 3", "103424 MiB of disk", "102400 MiB")),
    "disabled hosts": (
        zoned(h1=DISABLED, h2=DISABLED, h3=DISABLED), {},
        ("ComputeFilter removed all 3", "disabled", "kernel upgrade")),
    "dead services": (
        zoned(h1=DEAD, h2=DEAD, h3=DEAD), {},
        ("ComputeFilter removed all 3", "last heard from 14400 s ago")),
    "disabled and dead": (
        zoned(h1=DISABLED, h2=DEAD, h3=DEAD), {},
        ("ComputeFilter removed all 3", "2 because", "1 because", "kernel upgrade")),
    "a zone that is not there": (
        zoned(), {"availability_zone": "az-1"},
        ("AvailabilityZoneFilter removed all 3", "'az-1'", "no such zone", "az1, az2, nova")),
    "an extra spec of aggregates": (
        zoned(), {"flavor": {"extra_specs": {"aggregate_instance_extra_specs:ssd": "nvme"}}},
        ("AggregateInstanceExtraSpecsFilter removed all 3", "ssd nvme", "ssd = false")),
    "a capability": (
        zoned(), {"flavor": {"extra_specs": {"capabilities:hypervisor_type": "xen"}}},
        ("ComputeCapabilitiesFilter removed all 3", "hypervisor_type xen")),
    "a server group that is full": (
        {**zoned(), "instances": [
            {"uuid": f"m{n}", "host": f"h{n}", "node": f"h{n}", "instance_type_id": 1,
             "vm_state": "active", "deleted": 0} for n in (1, 2, 3)]},
        {"group": {"policy": "anti-affinity", "members": ["m1", "m2", "m3"]}},
        ("ServerGroupAntiAffinityFilter removed all 3", "anti-affinity", "h1: has members: m1")),
    "a server group elsewhere": (
        zoned(h3=DISABLED), {"group": {"policy": "affinity", "hosts": ["h3"]}},
        ("ServerGroupAffinityFilter removed the last 2 of 3", "server group: h3",
         "ComputeFilter 1")),
    "cells": (
        zoned(), {"numa_topology": pinned()},
        ("NUMATopologyFilter removed all 3", "2 CPUs", "1024 MiB", "reports no NUMA cells")),
    "devices": (
        zoned(), {"pci_requests": a_device()},
        ("PciPassthroughFilter removed all 3", "2 × PCI device fast-nic")),
    "an image for another machine": (
        zoned(), {"image": {"hw_architecture": "aarch64"}},
        ("ImagePropertiesFilter removed all 3", "architecture aarch64")),
    "a forced host that is not there": (
        zoned(), {"force_hosts": ["h33"]}, ("force_hosts = h33", "h33 does not exist", "h3")),
    "a destination that is not there": (
        zoned(), {"requested_destination": objects.Destination(host="gone")},
        ("destination = gone", "gone does not exist")),
    "a destination whose node is not there": (
        zoned(), {"requested_destination": objects.Destination(node="lost")},
        ("destination = lost", "lost does not exist")),
    "every host ignored": (
        zoned(), {"ignore_hosts": ["h1", "h2", "h3"]}, ("ignore_hosts = h1, h2, h3",)),
    "no services": (
        a_fleet(8192, services=[]), {}, ("no record of a compute service", "1 host removed")),
    "no hosts": (
        a_fleet(), {}, ("no compute host is known",)),
}  # fmt: skip


def refused(fleet, request, count=1):
    manager = SchedulerManager(a_conf(), a_driver(fleet, enabled_filters=FILTERS))
    names = [UUID[:-1] + str(number) for number in range(1, count + 1)]
    with pytest.raises(errors.NoValidHost):
        manager.select_destinations(Context, spec_obj=a_request(**request), instance_uuids=names)
    return manager


@pytest.mark.parametrize("what", REFUSALS)
def test_the_first_line_names_the_true_cause_and_counts_add_up(what):
    fleet, request, expected = REFUSALS[what]
    manager = refused(fleet, request)
    first = printed(manager, "req-7").splitlines()[0]
    assert first.startswith("No host fits: ")
    assert [text for text in expected if text not in first] == [], first
    [record] = told(manager, UUID)
    assert record["cause"] == first
    removed = sum(sum(count["removed"].values()) for count in record["filters"])
    assert sum(record["never_evaluated"].values()) + removed == record["fleet"]
    assert (record["outcome"], record["passed"]) == ("no_host_fits", 0)


def test_the_numbers_are_those_of_the_moment():
    manager = refused(*REFUSALS["memory in the zone"][:2])
    before = printed(manager, "req-7").splitlines()[0]
    host_manager = manager.driver.host_manager
    host_manager.table.update(host_manager.table.rows["h1", "h1"], {"free_ram_mb": 8000})
    assert printed(manager, "req-7").splitlines()[0] == before


def test_near_misses_fail_nothing_else():
    manager = refused(
        zoned(h1=DISABLED), {"flavor": {"memory_mb": 4096}, "availability_zone": "az1"}
    )
    [record] = told(manager, "req-7")
    [zone, ram] = record["refusal"]["findings"]
    assert [(each["host"], each["also_fails"]) for each in zone["examples"]] == [("h3", [])]
    assert [(e["host"], e["missing"], e["also_fails"]) for e in ram["examples"]] == [
        ("h1", 196.0, ["ComputeFilter"]),
        ("h2", 3096.0, []),
    ]
    assert "near miss" in printed(manager, "req-7")


def test_the_instance_that_found_no_room_is_named():
    manager = refused(a_fleet(2048, 2048), {"flavor": {"memory_mb": 2048}}, count=3)
    first = printed(manager, "req-7").splitlines()[0]
    assert "room for 2 of 3 instances" in first
    assert "RamFilter removed all 2 hosts: 2048 MiB of memory wanted" in first
    assert "0 MiB free" in first
