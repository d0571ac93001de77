"""Picks stay subtracted until the host's report includes the instance."""

import numpy as np
import pytest

from scheduler.hosts.consumption import Consumption
from scheduler.hosts.evidence import Terms
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable
from tests.builders import an_instance_row

KEY = ("h1", "n1")
AMOUNT = Consumption(ram_mb=512, disk_mb=1024, vcpus=2)
BEFORE = {"free_ram_mb": 4096, "free_disk_mb": 10240, "vcpus_used": 1, "num_instances": 1}


@pytest.fixture
def reservations():
    table = HostTable()
    report(table, at=100.0)
    table.set_service("h1", {"host": "h1"}, 100.0)
    return Reservations(table, expiry_seconds=60)


def report(table, at):
    """The row as the host itself reports it."""
    return table.put(KEY, {"node_id": 1, "updated_at": at, "num_io_ops": 0, **BEFORE})


def numbers(table):
    row = table.rows[KEY]
    return {name: table.value(row, name) for name in (*BEFORE, "num_io_ops")}


def pick(reservations, uuid="u1", now=110.5):
    return reservations.reserve(reservations.table.rows[KEY], uuid, AMOUNT, now)


def seen(vm_state="active", host="h1", **columns):
    """The row of the instance as a read found it."""
    return an_instance_row("u1", host, **{"vm_state": vm_state, "updated_at": 111, **columns})


TAKEN = {
    "free_ram_mb": 3584,
    "free_disk_mb": 9216,
    "vcpus_used": 3,
    "num_instances": 2,
    "num_io_ops": 1,
}
FREE = {**BEFORE, "num_io_ops": 0}


def test_a_pick_consumes_and_undo_restores_exactly(reservations):
    made = pick(reservations)
    assert numbers(reservations.table) == TAKEN
    assert "u1" in reservations.table.instances["h1"]
    reservations.release(made)
    assert numbers(reservations.table) == FREE
    assert reservations.table.instances == {}
    assert list(reservations) == []


def test_a_report_without_the_instance_does_not_wipe_the_pick(reservations):
    pick(reservations)
    report(reservations.table, at=112.0)
    reservations.reapply(KEY)
    reservations.settle(113.0)
    assert numbers(reservations.table) == TAKEN


@pytest.mark.parametrize(
    ("instance", "closed"),
    [
        pytest.param(seen("building", host=None), False, id="nobody builds it yet"),
        pytest.param(seen("building"), False, id="its host has it and may not have counted it"),
        pytest.param(seen("building", task_state="networking"), True, id="its host counts it"),
        pytest.param(seen(), True, id="it runs"),
        pytest.param(seen(host="h2"), True, id="it runs elsewhere"),
        pytest.param(seen("building", host=None, deleted=5), True, id="it was deleted"),
        pytest.param(seen("error", host=None), True, id="it failed"),
        pytest.param(seen("error", host=None, updated_at=90), True, id="it failed before"),
        pytest.param(seen("error", updated_at=90), True, id="it failed before, on its host"),
        pytest.param(None, False, id="nobody has heard of it"),
    ],
)
def test_when_the_pick_of_a_new_instance_is_closed(reservations, instance, closed):
    pick(reservations)
    report(reservations.table, at=111.0)
    reservations.reapply(KEY)
    reservations.settle(112.0, [instance] if instance else [])
    assert numbers(reservations.table) == (FREE if closed else TAKEN)


@pytest.mark.parametrize(
    ("home", "instance", "reported_at", "closed"),
    [
        pytest.param("h2", seen(host="h2"), 120.0, False, id="it has not left"),
        pytest.param("h2", seen(), 112.0, False, id="it has come, the report may be older"),
        pytest.param("h2", seen(), 114.0, True, id="it has come, and a report since"),
        pytest.param("h2", seen(host="h3"), 100.0, True, id="it went elsewhere"),
        pytest.param(
            "h1", seen(instance_type_id=6), 120.0, False, id="not resized yet where it is"
        ),
        pytest.param("h1", seen(), 120.0, True, id="resized in place"),
    ],
)
def test_when_the_pick_of_an_instance_that_moves_is_closed(
    reservations, home, instance, reported_at, closed
):
    known = TrackedInstance("u1", home, vm_state="active", updated_at=50.0)
    reservations.table.put_instance(home, "u1", known)
    reservations.reserve(reservations.table.rows[KEY], "u1", AMOUNT, 110.5, instance_type_id=7)
    report(reservations.table, at=reported_at)
    reservations.reapply(KEY)
    reservations.settle(116.0, [instance])
    assert numbers(reservations.table) == (FREE if closed else TAKEN)


def test_what_is_written_in_the_second_of_a_pick_settles_nothing(reservations):
    report(reservations.table, at=110.0)
    pick(reservations, now=110.5)
    reservations.settle(110.9, [seen("building", updated_at=110)])
    assert numbers(reservations.table) == TAKEN


def test_a_pick_nobody_ever_hears_of_expires(reservations):
    pick(reservations, now=110.0)
    reservations.settle(170.0)
    assert numbers(reservations.table) == TAKEN
    reservations.settle(170.1)
    assert numbers(reservations.table) == FREE
    assert reservations.table.host_of_instance == {}


def test_only_picks_that_something_was_read_of_are_judged(reservations, monkeypatch):
    judged = []
    end_of = reservations.end_of
    monkeypatch.setattr(
        reservations, "end_of", lambda p, now: judged.append(p.uuid) or end_of(p, now)
    )
    for uuid in ("u1", "u2", "u3"):
        pick(reservations, uuid=uuid, now=110.5)
    reservations.settle(111.0)
    assert judged == []
    reservations.settle(112.0, [seen("building", host=None)])
    assert judged == ["u1"]
    reservations.settle(113.0)
    assert judged == ["u1"]
    reservations.reapply(KEY)
    reservations.settle(114.0)
    assert judged == ["u1", "u1", "u2", "u3"]
    reservations.settle(170.6)
    assert judged[4:] == ["u1", "u2", "u3"]
    assert list(reservations) == []


def test_a_pick_that_does_not_say_when_it_ends_has_ended(reservations):
    terms = Terms(*KEY, None, None, 110.0, float("-inf"))
    reservations.add(Reservation(KEY, AMOUNT, terms, "u1", None))
    assert numbers(reservations.table) != FREE
    reservations.settle(111.0)
    assert list(reservations) == []


def test_a_pick_without_uuid_is_closed_by_a_newer_report(reservations):
    pick(reservations, uuid=None, now=110.5)
    report(reservations.table, at=110.0)
    reservations.reapply(KEY)
    reservations.settle(111.0)
    assert numbers(reservations.table) == TAKEN
    report(reservations.table, at=111.0)
    reservations.reapply(KEY)
    reservations.settle(111.0)
    assert numbers(reservations.table) == FREE


def test_closing_a_pick_keeps_the_instance_that_really_runs(reservations):
    pick(reservations)
    running = TrackedInstance("u1", "h1", vm_state="active", updated_at=111.0)
    reservations.table.put_instance("h1", "u1", running)
    report(reservations.table, at=112.0)
    reservations.reapply(KEY)
    reservations.settle(112.0, [seen()])
    assert list(reservations) == []
    assert reservations.table.instances["h1"]["u1"] is running


def test_picks_of_a_host_that_vanished_count_again_when_it_is_back(reservations):
    pick(reservations)
    reservations.table.remove(KEY)
    reservations.settle(111.0)
    report(reservations.table, at=112.0)
    reservations.reapply(KEY)
    assert numbers(reservations.table) == TAKEN
    reservations.table.remove(KEY)
    reservations.settle(170.6)
    assert list(reservations) == []


def test_a_new_decision_on_an_instance_replaces_the_earlier_one(reservations):
    first = pick(reservations)
    second = pick(reservations)
    reservations.confirm([second])
    assert list(reservations) == [second]
    assert numbers(reservations.table) == TAKEN
    assert reservations.table.instances["h1"]["u1"] is second.placeholder
    assert first is not second


def test_an_unnamed_instance_is_seen_under_its_stand_in(reservations):
    made = reservations.reserve(reservations.table.rows[KEY], None, AMOUNT, 110.0, "unnamed-1")
    assert list(reservations.table.instances["h1"]) == ["unnamed-1"]
    reservations.confirm([made])
    report(reservations.table, at=111.0)
    reservations.reapply(KEY)
    reservations.settle(111.0)
    assert reservations.table.instances == {}
    assert numbers(reservations.table) == FREE


def test_what_becomes_of_a_copy_leaves_the_books_as_they_are(reservations):
    first = pick(reservations)
    twin = reservations.copy(reservations.table.copy())
    [copied] = twin
    assert copied is not first
    assert (copied.key, copied.amount, copied.uuid) == (KEY, AMOUNT, "u1")
    assert (twin.expiry_seconds, twin.uuids(), twin.on(KEY)) == (60, {"u1"}, (copied,))

    twin.release(copied)

    assert numbers(twin.table) == FREE
    assert numbers(reservations.table) == TAKEN
    assert list(reservations) == [first]
    assert reservations.on(KEY) == (first,)
    assert reservations.on(("h9", "n9")) == ()


def test_the_table_as_if_some_picks_took_nothing(reservations):
    first, second = pick(reservations), pick(reservations, "u2")
    with reservations.without([first]):
        assert numbers(reservations.table) == TAKEN
    with reservations.without([first, second]):
        assert numbers(reservations.table) == FREE
    assert reservations.table.value(reservations.table.rows[KEY], "free_ram_mb") == 4096 - 2 * 512
    assert list(reservations) == [first, second]
    reservations.table.remove(KEY)
    with reservations.without([first]):
        assert reservations.table.rows == {}


def test_only_hosts_that_reported_are_picked(reservations):
    silent = reservations.table.put(("h2", "n2"), {"node_id": 2, "reported": False})
    told = reservations.table.put(("h3", "n3"), {"node_id": 3, "reported": True})
    assert reservations.claimable(np.array([silent, told])).tolist() == [False, True]
    assert reservations.accepts(KEY, 0.0)


@pytest.mark.parametrize(
    ("vm_state", "leaves"), [("active", "h2"), ("building", None), (None, None)]
)
def test_which_host_a_picked_instance_is_to_leave(reservations, vm_state, leaves):
    reservations.table.put_instance("h2", "u1", TrackedInstance("u1", "h2", vm_state=vm_state))
    assert pick(reservations).terms.source_host == leaves


def test_rows_of_other_instances_settle_nothing(reservations):
    pick(reservations)
    reservations.settle(111.0, [an_instance_row("other", "h1", 111)])
    assert numbers(reservations.table) == TAKEN
