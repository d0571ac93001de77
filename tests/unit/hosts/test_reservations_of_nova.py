"""The reservations of Nova's releases: which reports count, and what a failed request leaves."""

import numpy as np
import pytest

from scheduler.hosts.consumption import Consumption
from scheduler.hosts.reservations import NewtonReservations, PlacementReservations, Reservations
from scheduler.hosts.table import NEVER, HostTable

KEY = ("h1", "n1")
AMOUNT = Consumption(ram_mb=512, disk_mb=1024, vcpus=2)


@pytest.fixture
def table():
    table = HostTable()
    table.put(KEY, {"node_id": 1, "updated_at": 100.0, "free_ram_mb": 4096, "reported": True})
    table.put(("h2", "n2"), {"node_id": 2, "free_ram_mb": 4096, "reported": False})
    for host, _node in list(table.rows):
        table.set_service(host, {"host": host}, 100.0)
    return table


def free_ram_mb(table):
    return table.value(table.rows[KEY], "free_ram_mb")


def pick(reservations, now=110.5):
    return reservations.reserve(reservations.table.rows[KEY], "u1", AMOUNT, now)


@pytest.mark.parametrize(
    ("updated_at", "accepted"),
    [(110.0, False), (110.5, True), (111.0, True), (NEVER, True)],
)
def test_newton_ignores_reports_older_than_its_last_pick(table, updated_at, accepted):
    reservations = NewtonReservations(table)
    reservations.confirm([pick(reservations)])
    reservations.settle(1000.0)
    assert free_ram_mb(table) == 4096 - 512
    assert list(reservations) == []
    assert reservations.accepts(KEY, updated_at) is accepted


def test_newton_leaves_what_a_failed_request_took_until_the_next_row_of_any_age(table):
    reservations = NewtonReservations(table)
    earlier, later = pick(reservations), pick(reservations, now=120.0)
    reservations.confirm([earlier])
    reservations.release(later)
    assert free_ram_mb(table) == 4096 - 1024
    assert reservations.accepts(KEY, 1.0)


def test_newton_starts_afresh_where_the_service_was_gone(table):
    reservations = NewtonReservations(table)
    reservations.confirm([pick(reservations)])
    assert not reservations.accepts(KEY, 100.0)
    table.set_service("h1", None, 0.0)
    assert reservations.accepts(KEY, 100.0)


def test_newton_does_not_show_the_instance_on_its_host(table):
    reservations = NewtonReservations(table)
    reservations.confirm([pick(reservations)])
    assert table.host_of_instance == {}


def test_undoing_on_a_host_that_is_gone(table):
    reservations = NewtonReservations(table)
    made = pick(reservations)
    table.remove(KEY)
    reservations.release(made)
    assert list(reservations) == []


@pytest.mark.parametrize(
    ("kind", "mask"),
    [
        (Reservations, [True, False]),
        (NewtonReservations, [True, True]),
        (PlacementReservations, [True, False]),
    ],
)
def test_rows_never_filled_in_are_picked_in_newton_only(table, kind, mask):
    assert kind(table).claimable(np.array([0, 1])).tolist() == mask


def test_with_placement_the_next_request_starts_from_the_row(table):
    reservations = PlacementReservations(table)
    made = pick(reservations)
    reservations.confirm([made])
    assert free_ram_mb(table) == 4096 - 512
    assert table.host_of_instance == {"u1": "h1"}
    reservations.settle(110.5)
    assert free_ram_mb(table) == 4096
    assert table.host_of_instance == {}
    assert list(reservations) == []
