"""Cells and devices are taken, seen by the next one, and given back bit for bit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import numa, objects
from scheduler.hosts.consumption import Consumption, Fitting
from scheduler.hosts.reservations import NewtonReservations, Reservations
from tests import cells, fleets
from tests.builders import NOW, a_fleet, a_host, a_request, an_instance_row
from tests.unit.numa.builders import cell, guest, host, want

PINNED = guest(want(range(2), "dedicated"))
ONE_NIC = {"vendor_id": "8086", "product_id": "10ed", "count": 1}
KEY = ("h1", "n1")


def devices(count):
    one = objects.InstancePCIRequest(count=count, spec=[{"vendor_id": "8086"}])
    return objects.InstancePCIRequests(requests=[one])


def amount(topology=None, requests=None, limits=None, how=None):
    request = a_request(
        numa_topology=topology.to_object() if topology else None, pci_requests=requests
    )
    return Consumption.from_request(request, limits or {}, how or Fitting())


def pinned(table, key=KEY):
    return [set(each.pinned) for each in table.value(table.rows[key], "numa_topology").cells]


def free_devices(table, key=KEY):
    return sum(each.count for each in table.value(table.rows[key], "pci_stats").pools)


def report(table, topology, pools=None):
    """The host reports its cells and devices anew."""
    numbers = {"free_ram_mb": 4096, "num_instances": 0, "num_io_ops": 0}
    documents = {"numa_topology": topology.to_text(), "pci_stats": pools}
    return table.put(KEY, {"updated_at": NOW + 5, **numbers, **documents})


def test_a_request_without_cells_and_devices_wishes_for_nothing():
    assert amount().wish is None
    assert amount(numa.GuestTopology(), objects.InstancePCIRequests(requests=[])).wish is None


def test_a_pick_takes_cells_and_devices():
    table = a_fleet({"numa_topology": cells.TOPOLOGY, "pci_stats": cells.POOLS})
    reservations = Reservations(table)

    reservations.reserve(0, "u1", amount(PINNED, devices(2)), NOW)

    assert pinned(table) == [{0, 1}, set()]
    assert free_devices(table) == 2
    assert table.value(0, "num_io_ops") == 1


def test_equal_hosts_stay_equal_after_equal_picks():
    table = a_fleet(*[{"numa_topology": cells.TOPOLOGY}] * 2)
    reservations = Reservations(table)
    for row in (0, 1):
        reservations.reserve(row, None, amount(PINNED), NOW)

    assert len(table.pools["numa_topology"]) == 1


@pytest.mark.parametrize(("pack", "expected"), [(False, [{0}, {4, 5}]), (True, [{0, 1, 2}, set()])])
def test_the_emptiest_cells_come_first_unless_packed(pack, expected):
    topology = host(cell(0, pinned={0}), cell(1, range(4, 8)))
    table = a_fleet({"numa_topology": topology})

    Reservations(table).reserve(0, None, amount(PINNED, how=Fitting(pack=pack)), NOW)

    assert pinned(table) == expected


def test_the_limits_of_the_host_hold_where_there_are_any():
    topology = host(cell(cpu_usage=3))
    limits = numa.Limits(1.0, 1.0).to_object()
    for given_limits, usage in (({"numa_topology": limits}, 3), ({}, 5)):
        table = a_fleet({"numa_topology": topology})
        Reservations(table).reserve(0, None, amount(guest(want()), limits=given_limits), NOW)
        assert table.value(0, "numa_topology").cells[0].cpu_usage == usage


def test_what_cannot_be_taken_is_told_and_counts_no_io(caplog):
    state = a_host(pci_stats=json.dumps([ONE_NIC]))

    state.consume_from_request(a_request(pci_requests=devices(2)))

    assert (state.num_instances, state.num_io_ops) == (1, 0)
    assert "Selected host: h1 failed to consume from instance." in caplog.text
    assert free_devices(state.table) == 1


def test_the_next_instance_starts_where_the_last_one_was_placed():
    request = a_request(numa_topology=guest(want(pagesize=-3)).to_object())
    a_host(numa_topology=host(cell(5))).consume_from_request(request)

    [mine] = request.numa_topology.cells
    assert (mine.id, mine.pagesize) == (5, 4)


def test_newton_believes_an_older_row_after_a_pick_that_failed():
    table = a_fleet({"pci_stats": "[]", "updated_at": NOW - 9})
    how = Fitting(numa.NEWTON)

    NewtonReservations(table).reserve(0, "u1", amount(requests=devices(1), how=how), NOW)
    assert table.value(0, "updated_at") == NOW - 9
    NewtonReservations(table).reserve(0, "u1", amount(PINNED, how=how), NOW)
    assert table.value(0, "updated_at") == NOW


def test_a_report_takes_the_place_of_what_was_taken_and_open_picks_find_theirs_anew():
    table = a_fleet({"numa_topology": host(cell()), "pci_stats": json.dumps([ONE_NIC])})
    reservations = Reservations(table)
    reservations.reserve(0, "u1", amount(PINNED), NOW)

    report(table, host(cell(pinned={0, 1})))
    reservations.reapply(KEY)

    assert pinned(table) == [{0, 1, 2, 3}]


def test_a_pick_that_found_no_room_beside_a_reported_one_finds_it_when_that_is_closed():
    """The report has u1 already; until its pick is closed the host looks fuller than it is."""
    table = a_fleet({"numa_topology": host(cell())})
    reservations = Reservations(table)
    for uuid in ("u1", "u2"):
        reservations.reserve(0, uuid, amount(PINNED), NOW)

    report(table, host(cell(pinned={2, 3})))
    reservations.reapply(KEY)
    assert pinned(table) == [{0, 1, 2, 3}]
    reservations.settle(NOW + 6, [an_instance_row("u1", "h1")])

    assert [pick.uuid for pick in reservations] == ["u2"]
    assert pinned(table) == [{0, 1, 2, 3}]
    assert table.value(0, "num_instances") == 1
    assert (table.value(0, "free_ram_mb"), table.value(0, "num_io_ops")) == (4096 - 512, 1)


wishes = st.tuples(st.one_of(st.none(), cells.guests()), st.one_of(st.none(), cells.devices()))
rows = st.fixed_dictionaries({"numa_topology": cells.topologies, "pci_stats": cells.pools})


@settings(deadline=None)
@given(
    kinds=st.lists(rows, min_size=1, max_size=2),
    orders=st.lists(st.tuples(st.integers(0, 1), wishes), max_size=6),
    semantics=st.sampled_from([numa.CURRENT, numa.NEWTON]),
    shuffled=st.randoms(use_true_random=False),
)
def test_undoing_restores_the_table_bit_for_bit_in_any_order(kinds, orders, semantics, shuffled):
    table = a_fleet(*kinds)
    reservations = Reservations(table)
    before = fleets.snapshot(table)
    picks = []
    for number, (row, (topology, requests)) in enumerate(orders):
        request = a_request(numa_topology=topology, pci_requests=requests)
        wanted = Consumption.from_request(request, {}, Fitting(semantics))
        picks.append(reservations.reserve(row % len(kinds), f"u{number}", wanted, NOW))
    shuffled.shuffle(picks)
    for pick in picks:
        reservations.release(pick)

    assert fleets.snapshot(table) == before
    assert list(reservations) == []
