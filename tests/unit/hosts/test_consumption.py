"""Cells and devices that an instance takes; that all is given back: test_reservations."""

from __future__ import annotations

import json

import pytest

from scheduler import numa, objects
from scheduler.hosts.host_state import Consumption, Fitting, consume
from tests.builders import a_fleet, a_host, a_request
from tests.unit.numa.builders import cell, guest, host, want
from tests.world import random_fleets

PINNED = guest(want(range(2), "dedicated"))
ONE_NIC = {"vendor_id": "8086", "product_id": "10ed", "count": 1}


def devices(count):
    one = objects.InstancePCIRequest(count=count, spec=[{"vendor_id": "8086"}])
    return objects.InstancePCIRequests(requests=[one])


def amount(topology=None, requests=None, limits=None, **how):
    topology = topology.to_object() if topology else None
    request = a_request(numa_topology=topology, pci_requests=requests)
    return Consumption.from_request(request, limits or {}, Fitting(**how))


def pinned(table):
    return [set(each.pinned) for each in table.value(0, "numa_topology").cells]


@pytest.mark.parametrize("nothing", [None, objects.InstancePCIRequests(requests=[])])
def test_a_request_without_cells_and_devices_wishes_for_nothing(nothing):
    assert amount(nothing and numa.GuestTopology(), nothing).wish is None


def test_equal_hosts_stay_equal():
    table = a_fleet(
        *[{"numa_topology": random_fleets.TOPOLOGY, "pci_stats": random_fleets.POOLS}] * 2
    )
    for row in (0, 1):
        consume(table, row, amount(PINNED, devices(2)))
    assert pinned(table) == [{0, 1}, set()]
    assert [pool.count for pool in table.value(0, "pci_stats").pools] == [1, 1]
    assert table.value(0, "num_io_ops") == 1
    assert len(table.pools["numa_topology"]) == len(table.pools["pci_stats"]) == 1


@pytest.mark.parametrize(("pack", "expected"), [(False, [{0}, {4, 5}]), (True, [{0, 1, 2}, set()])])
def test_the_emptiest_cells_come_first_unless_packed(pack, expected):
    table = a_fleet({"numa_topology": host(cell(0, pinned={0}), cell(1, range(4, 8)))})
    consume(table, 0, amount(PINNED, pack=pack))
    assert pinned(table) == expected


@pytest.mark.parametrize(("has_limits", "usage"), [(True, 3), (False, 5)])
def test_the_limits_of_the_host_hold_where_there_are_any(has_limits, usage):
    limits = {"numa_topology": numa.Limits(1.0, 1.0).to_object()} if has_limits else {}
    table = a_fleet({"numa_topology": host(cell(cpu_usage=3))})
    consume(table, 0, amount(guest(want()), limits=limits))
    assert table.value(0, "numa_topology").cells[0].cpu_usage == usage


def test_what_cannot_be_taken_is_logged_and_counts_no_io(caplog):
    state = a_host(pci_stats=json.dumps([ONE_NIC]))
    state.consume_from_request(a_request(pci_requests=devices(2)))
    assert (state.num_instances, state.num_io_ops) == (1, 0)
    assert "Selected host: h1 failed to consume from instance." in caplog.text
    assert [pool["count"] for pool in state.pci_stats.pools] == [1]


def test_the_next_instance_starts_where_the_last_one_was_placed():
    request = a_request(numa_topology=guest(want(pagesize=-3)).to_object())
    a_host(numa_topology=host(cell(5))).consume_from_request(request)
    [mine] = request.numa_topology.cells
    assert (mine.id, mine.pagesize) == (5, 4)
