"""What the page is told of the fleet: all of it once, then the rows that have changed."""

import json

import numpy as np
import pytest

from scheduler import objects
from scheduler.db.cells import CellHealth
from scheduler.hosts.host_manager import HostManager
from scheduler.status_page.fleet import FRESH_SECONDS, STATES, Fleet
from tests.builders import NOW, a_conf, a_host

COLUMNS_PER_HOST = 18


class NoReader:
    """A fleet in one piece, of which nothing is read."""

    left_out = ()

    def cell_health(self):
        return [CellHealth(uuid, None, False, True, 1, None, "gone") for uuid in self.left_out]


class Page:
    """A fleet with the table it shows, and a reader of it that keeps what it was told."""

    def __init__(self):
        self.manager = HostManager(a_conf(), NoReader(), clock=lambda: NOW)
        self.manager.read_at = NOW
        self.table = self.manager.table
        self.seconds = 0.0
        self.fleet = Fleet(self.manager, lambda: self.seconds)
        self.version = None

    def changes(self, since="mine"):
        self.seconds += FRESH_SECONDS
        found = self.fleet.changes(self.version if since == "mine" else since)
        self.version = found["version"]
        return found

    def changed(self):
        """The names of the hosts that the next answer is about."""
        return self.changes()["columns"]["host"]


@pytest.fixture
def page():
    page = Page()
    for name in ("h1", "h2", "h3"):
        a_host(name, name, table=page.table)
    return page


def told(found, host, column):
    return found["columns"][column][found["columns"]["host"].index(host)]


def test_the_first_answer_is_the_whole_fleet(page):
    a_host("h4", "n4", table=page.table, free_ram_mb=-512, ram_allocation_ratio=1.5)
    found = page.changes()
    assert found["is_full"]
    assert found["columns"]["host"] == ["h1", "h2", "h3", "h4"]
    assert found["columns"]["node"] == [None, None, None, "n4"]
    assert len(found["columns"]) == COLUMNS_PER_HOST
    assert {len(values) for values in found["columns"].values()} == {4}
    assert told(found, "h4", "free_ram_mb") == -512
    assert told(found, "h4", "ram_allocation_ratio") == 1.5
    assert told(found, "h4", "free_disk_mb") == 100 * 1024
    json.dumps(found, allow_nan=False)


CHANGES = {
    "nothing": (lambda table: None, []),
    "a number": (lambda table: table.update(1, {"free_ram_mb": 1}), ["h2"]),
    "a ratio": (lambda table: table.update(1, {"cpu_allocation_ratio": 2.0}), ["h2"]),
    "a column the page does not show": (lambda table: table.update(1, {"takers": 3}), []),
    "a heartbeat in time": (lambda table: table.set_service("h2", {}, NOW - 1), []),
    "silence": (lambda table: table.set_service("h2", {}, NOW - 61), ["h2"]),
    "no service": (lambda table: table.set_service("h2", None, 0), ["h2"]),
    "a new host": (lambda table: a_host("h4", "n4", table=table), ["h4"]),
    "an aggregate": (
        lambda table: table.set_aggregates(
            {"h3": (objects.Aggregate(id=1, name="fast", metadata={}),)}
        ),
        ["h3"],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_later_answers_are_about_what_has_changed(page, what):
    change, hosts = CHANGES[what]
    page.changes()
    change(page.table)
    found = page.changes()
    assert (found["is_full"], found["columns"]["host"], found["removed"]) == (False, hosts, [])
    assert page.changed() == []


def have_rows_used_again(page, monkeypatch):
    """As many are free as there are hosts, as when many were replaced."""
    monkeypatch.setattr("scheduler.hosts.table.FIRST_CAPACITY", 0)
    for number in range(len(page.table)):
        a_host(f"gone{number}", f"gone{number}", table=page.table)
    for number in range(len(page.table) // 2):
        page.table.remove((f"gone{number}", f"gone{number}"))
    page.changes()


@pytest.mark.parametrize("is_seen_gone", [True, False])
def test_a_host_that_goes_and_one_that_takes_its_row(page, monkeypatch, is_seen_gone):
    page.changes()
    have_rows_used_again(page, monkeypatch)
    page.table.remove(("h2", "h2"))
    if is_seen_gone:
        assert page.changes()["removed"] == [1]
    a_host("h9", "h9", table=page.table)
    found = page.changes()
    rows, names = found["columns"]["row"], found["columns"]["host"]
    assert (rows, names, found["removed"]) == ([1], ["h9"], [])


STATE_OF = {
    "up": {},
    "forced down": {"service": {"forced_down": True, "disabled": True}},
    "silent": {"last_seen": NOW - 61, "service": {"disabled": True}},
    "disabled": {"service": {"disabled": True}},
    "not reported": {"reported": False},
}


@pytest.mark.parametrize("state", STATE_OF)
def test_states(page, state):
    a_host("odd", "odd", table=page.table, **STATE_OF[state])
    found = page.changes()
    assert STATES[told(found, "odd", "state")] == state
    assert STATES[told(found, "h1", "state")] == "up"


def test_hosts_without_service_and_of_cells_left_out(page):
    a_host("alone", "alone", table=page.table)
    page.table.set_service("alone", None, 0)
    a_host("far", "far", table=page.table, cell_uuid="c2", last_seen=NOW - 100)
    page.manager._reader.left_out = ("c2",)
    found = page.changes()
    assert STATES[told(found, "alone", "state")] == "no service"
    assert STATES[told(found, "far", "state")] == "left out"
    assert found["cells"][told(found, "far", "cell")] == "c2"


def test_zones_and_aggregates_have_numbers_that_stay(page):
    def put(**names):
        page.table.set_aggregates(
            {
                host: (objects.Aggregate(id=1, name=name, metadata={"availability_zone": "z, y"}),)
                for host, name in names.items()
            }
        )

    put(h1="a", h2="b")
    known = {}
    for names in ({"h1": "a", "h2": "b"}, {"h1": "c", "h2": "b"}, {"h1": "a", "h2": "b"}):
        put(**names)
        found = page.changes()
        known.update(enumerate(found["memberships"], found["memberships_from"]))
        for host, membership in zip(
            found["columns"]["host"], found["columns"]["membership"], strict=True
        ):
            zones, aggregates = (("y", "z"), (names[host],)) if host in names else ((), ())
            assert known[membership] == {"zones": zones, "aggregates": aggregates}
    assert len(known) == 4


@pytest.mark.parametrize(
    "since", ["", "x", "..", "00000000.1", "{epoch}.", "{epoch}.-1", "{epoch}.99"]
)
def test_whoever_names_no_version_of_ours_gets_everything(page, since):
    epoch = page.changes()["version"].partition(".")[0]
    found = page.changes(since.format(epoch=epoch))
    assert found["is_full"]
    assert found["columns"]["host"] == ["h1", "h2", "h3"]


def test_readers_do_not_disturb_each_other(page):
    first = page.changes(None)["version"]
    page.table.update(0, {"free_ram_mb": 1})
    second = page.changes(first)["version"]
    page.table.update(1, {"free_ram_mb": 1})
    assert page.changes(second)["columns"]["host"] == ["h2"]
    assert page.changes(first)["columns"]["host"] == ["h1", "h2"]


def test_a_snapshot_serves_for_a_moment(page):
    first = page.changes()["version"]
    page.table.update(0, {"free_ram_mb": 1})
    assert page.fleet.changes(first)["columns"]["host"] == []
    page.seconds += FRESH_SECONDS
    assert page.fleet.changes(first)["columns"]["host"] == ["h1"]


def test_numbers_for_labels_begin_anew_when_there_are_too_many(page):
    versions = set()
    for number in range(1100):
        page.table.set_aggregates(
            {"h1": (objects.Aggregate(id=1, name=f"a{number}", metadata={}),)}
        )
        found = page.changes()
        versions.add(found["version"].partition(".")[0])
    assert len(versions) == 2
    assert len(page.changes(None)["memberships"]) < 1000


def test_values_that_json_has_no_word_for(page):
    page.table.update(0, {"ram_allocation_ratio": float("nan"), "cpu_allocation_ratio": np.inf})
    json.dumps(page.changes(), allow_nan=False)
    assert page.changed() == []
