"""Picks stay subtracted until the host's report includes the instance."""

import pytest

from scheduler.hosts.books import Books, TrackedInstance
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.table import HostTable

KEY = ("h1", "n1")
AMOUNT = Consumption(ram_mb=512, disk_mb=1024, vcpus=2)
BEFORE = {"free_ram_mb": 4096, "free_disk_mb": 10240, "vcpus_used": 1, "num_instances": 1}


@pytest.fixture
def books():
    table = HostTable()
    report(table, at=100.0)
    table.set_service("h1", {"host": "h1"}, 100.0)
    return Books(table, expiry_seconds=60)


def report(table, at):
    """The row as the host itself reports it."""
    return table.put(KEY, {"node_id": 1, "updated_at": at, "num_io_ops": 0, **BEFORE})


def numbers(table):
    row = table.rows[KEY]
    return {name: table.value(row, name) for name in (*BEFORE, "num_io_ops")}


def pick(books, uuid="u1", now=110.5):
    return books.pick(books.table.rows[KEY], uuid, AMOUNT, now)


def running(host="h1", updated_at=111.0):
    return TrackedInstance("u1", host, vm_state="active", updated_at=updated_at)


TAKEN = {
    "free_ram_mb": 3584,
    "free_disk_mb": 9216,
    "vcpus_used": 3,
    "num_instances": 2,
    "num_io_ops": 1,
}
FREE = {**BEFORE, "num_io_ops": 0}


def test_a_pick_consumes_and_undo_restores_exactly(books):
    made = pick(books)
    assert numbers(books.table) == TAKEN
    assert "u1" in books.table.instances["h1"]
    books.undo(made)
    assert numbers(books.table) == FREE
    assert books.table.instances == {}
    assert list(books) == []


def test_a_report_without_the_instance_does_not_wipe_the_pick(books):
    pick(books)
    report(books.table, at=112.0)
    books.reapply(KEY)
    books.settle(113.0, frozenset())
    assert numbers(books.table) == TAKEN


@pytest.mark.parametrize(
    ("case", "instance", "reported_at", "gone", "closed"),
    [
        ("host has it and reported since", running(), 111.0, (), True),
        ("host has it, report is older than the instance", running(), 110.0, (), False),
        (
            "host has it, report of the same second as the pick",
            running(updated_at=110.0),
            110.0,
            (),
            True,
        ),
        ("it runs elsewhere", running(host="h2"), 100.0, (), True),
        ("it was deleted or failed", None, 100.0, ("u1",), True),
        ("nobody has heard of it", None, 115.0, (), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_when_a_pick_is_closed(books, case, instance, reported_at, gone, closed):
    pick(books)
    if instance:
        books.table.put_instance(instance.host, "u1", instance)
    report(books.table, at=reported_at)
    books.reapply(KEY)
    books.settle(116.0, frozenset(gone))
    assert numbers(books.table) == (FREE if closed else TAKEN)


def test_a_pick_nobody_ever_hears_of_expires(books):
    pick(books, now=110.0)
    books.settle(170.0, frozenset())
    assert numbers(books.table) == TAKEN
    books.settle(170.1, frozenset())
    assert numbers(books.table) == FREE
    assert books.table.host_of_instance == {}


def test_a_pick_without_uuid_is_closed_by_a_newer_report(books):
    pick(books, uuid=None, now=110.5)
    report(books.table, at=110.0)
    books.reapply(KEY)
    books.settle(111.0, frozenset())
    assert numbers(books.table) == TAKEN
    report(books.table, at=111.0)
    books.reapply(KEY)
    books.settle(111.0, frozenset())
    assert numbers(books.table) == FREE


def test_closing_a_pick_keeps_the_instance_that_really_runs(books):
    pick(books)
    books.table.put_instance("h1", "u1", running())
    report(books.table, at=112.0)
    books.reapply(KEY)
    books.settle(112.0, frozenset())
    assert books.table.instances["h1"]["u1"].vm_state == "active"


def test_picks_of_a_host_that_vanished_are_closed(books):
    pick(books)
    books.table.remove(KEY)
    books.settle(111.0, frozenset())
    assert list(books) == []


def test_a_new_decision_on_an_instance_replaces_the_earlier_one(books):
    first = pick(books)
    second = pick(books)
    books.confirm([second])
    assert list(books) == [second]
    assert numbers(books.table) == TAKEN
    assert books.table.instances["h1"]["u1"] is second.placeholder
    assert first is not second


def test_an_unnamed_instance_is_seen_under_its_stand_in(books):
    made = books.pick(books.table.rows[KEY], None, AMOUNT, 110.0, "unnamed-1")
    assert list(books.table.instances["h1"]) == ["unnamed-1"]
    books.confirm([made])
    report(books.table, at=111.0)
    books.reapply(KEY)
    books.settle(111.0, frozenset())
    assert books.table.instances == {}
    assert numbers(books.table) == FREE
