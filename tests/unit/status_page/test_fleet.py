"""What the page is told of the fleet: all of it once, then the rows that have changed."""

import itertools
import json
import random

import numpy as np
import pytest

from scheduler import objects
from scheduler.db.cells import CellHealth
from scheduler.hosts.host_manager import HostManager
from scheduler.status_page.fleet import FRESH_SECONDS, STATES, Fleet
from tests.builders import NOW, a_conf, a_host


class NoReader:
    """A fleet in one piece, of which nothing is read."""

    left_out = ()

    def cell_health(self):
        return [CellHealth(uuid, None, True, 1, None, "gone") for uuid in self.left_out]


class Browser:
    """A reader of the fleet of *manager*, and what it knows by all answers that it got."""

    def __init__(self, manager, fleet=None):
        self.table = manager.table
        self.seconds = 0.0
        self.fleet = fleet or Fleet(manager, lambda: self.seconds)
        self.version, self.hosts = None, {}

    def read(self):
        self.seconds += FRESH_SECONDS
        found = self.fleet.changes(self.version)
        if found["is_full"]:
            self.hosts.clear()
        for row in found["removed"]:
            self.hosts.pop(row, None)  # one that came and went in between was never told
        for row, host, *values, membership, cell in zip(*found["columns"].values(), strict=True):
            names = found["memberships"][membership], found["cells"][cell]
            self.hosts[row] = (host, *values, *names)
        self.version = found["version"]
        return found

    def changed(self):
        """The names of the hosts that the next answer is about."""
        return self.read()["columns"]["host"]


def a_manager(*hosts):
    manager = HostManager(a_conf(), NoReader(), clock=lambda: NOW)
    manager.read_at = NOW
    for name in hosts:
        a_host(name, name, table=manager.table)
    return manager


@pytest.fixture
def manager():
    return a_manager("h1", "h2", "h3")


@pytest.fixture
def page(manager):
    return Browser(manager)


def told(found, host, column):
    return found["columns"][column][found["columns"]["host"].index(host)]


def test_the_first_answer_is_the_whole_fleet(page):
    infinite = {"cpu_allocation_ratio": np.inf, "disk_allocation_ratio": float("nan")}
    a_host("h4", "n4", table=page.table, free_ram_mb=-512, ram_allocation_ratio=1.5, **infinite)
    found = page.read()
    assert found["is_full"]
    assert found["columns"]["host"] == ["h1", "h2", "h3", "h4"]
    assert found["columns"]["node"] == [None, None, None, "n4"]
    assert {len(values) for values in found["columns"].values()} == {4}
    shown = {"free_ram_mb": -512, "ram_allocation_ratio": 1.5, "free_disk_mb": 100 * 1024}
    assert {name: told(found, "h4", name) for name in shown} == shown
    json.dumps(found, allow_nan=False)
    assert page.changed() == []


CHANGES = {
    "a ratio": (lambda table: table.update(1, {"cpu_allocation_ratio": 2.0}), ["h2"]),
    "a column the page does not show": (lambda table: table.update(1, {"disk_mb_used": 3}), []),
    "a heartbeat in time": (lambda table: table.set_service("h2", {}, NOW - 1), []),
    "a service that is down": (lambda table: table.set_service("h2", {}, NOW - 61), ["h2"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_later_answers_are_about_what_has_changed(page, what):
    change, hosts = CHANGES[what]
    page.read()
    change(page.table)
    found = page.read()
    assert (found["is_full"], found["columns"]["host"], found["removed"]) == (False, hosts, [])
    assert page.changed() == []


STATE_OF = {
    "up": {},
    "forced down": {"service": {"forced_down": True, "disabled": True}},
    "down": {"last_seen": NOW - 61, "service": {"disabled": True}},
    "disabled": {"service": {"disabled": True}},
    "not reported": {"reported": False},
    "left out": {"cell_uuid": "c2", "last_seen": NOW - 100},
    "no service": {},
}


@pytest.mark.parametrize("state", STATE_OF)
def test_states(page, manager, state):
    a_host("odd", "odd", table=page.table, **STATE_OF[state])
    if state == "no service":
        page.table.set_service("odd", None, 0)
    manager._reader.left_out = ("c2",)
    found = page.read()
    assert STATES[told(found, "odd", "state")] == state
    assert STATES[told(found, "h1", "state")] == "up"
    assert found["cells"][told(found, "odd", "cell")] == STATE_OF[state].get("cell_uuid")


def test_hosts_that_take_no_servers_since_when_and_why(page, manager):
    a_host("h3", "h3", table=page.table, service={"disabled": True, "disabled_reason": "old"})
    page.fleet.note_taken_out()
    broken = {"forced_down": True, "disabled_reason": "broken"}
    a_host("h2", "h2", table=page.table, service=broken)
    a_host("h1", "h1", table=page.table, last_seen=NOW - 90)
    for seconds in (10, 20):
        manager.clock = lambda seconds=seconds: NOW + seconds
        page.fleet.note_taken_out()
    rows = page.table.rows
    assert page.read()["unavailable"] == [
        (rows["h1", "h1"], NOW - 90, None),
        (rows["h2", "h2"], NOW + 10, "broken"),
        (rows["h3", "h3"], None, "old"),  # before anybody looked
    ]


def something_happens(table, rng):
    name = f"h{rng.randrange(12)}"
    row = table.rows.get((name, name))
    if row is None:
        a_host(name, name, table=table, cell_uuid=rng.choice(["c1", "c2"]))
        return
    zones = {"availability_zone": rng.choice(["z, y", "z"])}
    several = (objects.Aggregate(id=1, name=f"a{rng.randrange(50)}", metadata=zones),)
    rng.choice(
        [
            lambda: table.remove((name, name)),
            lambda: table.update(row, {"free_ram_mb": rng.randrange(9)}),
            lambda: table.set_service(name, rng.choice([None, {}, {"disabled": True}]), NOW),
            lambda: table.set_aggregates({name: several}),
        ]
    )()


@pytest.mark.parametrize("seed", range(5))
def test_whoever_reads_whenever_knows_what_all_know(manager, seed, monkeypatch):
    monkeypatch.setattr("scheduler.hosts.table.FIRST_CAPACITY", 0)  # rows are used again
    rng, seconds = random.Random(seed), itertools.count(step=FRESH_SECONDS)
    fleet = Fleet(manager, lambda: next(seconds))
    fresh, *several = [Browser(manager, fleet) for _ in range(5)]
    for _ in range(300):
        something_happens(manager.table, rng)
        rng.choice(several).read()
    fresh.read()
    assert {each[0] for each in fresh.hosts.values()} == {host for host, _ in manager.table.rows}
    for each in several:
        each.read()
        assert each.hosts == fresh.hosts
        assert each.changed() == []


@pytest.mark.parametrize(
    "since",
    ["", "x", "..", "00000000.1", "{epoch}.", "{epoch}.-1", "{epoch}.99", f"{{epoch}}.{9:05000}"],
    ids=lambda since: since[:20],
)
def test_whoever_names_no_version_of_ours_gets_everything(page, since):
    page.version = since.format(epoch=page.read()["version"].partition(".")[0])
    found = page.read()
    assert found["is_full"]
    assert found["columns"]["host"] == ["h1", "h2", "h3"]


def test_a_snapshot_serves_for_a_moment(page):
    first = page.read()["version"]
    page.table.update(0, {"free_ram_mb": 1})
    assert page.fleet.changes(first)["columns"]["host"] == []
    page.seconds += FRESH_SECONDS
    assert page.fleet.changes(first)["columns"]["host"] == ["h1"]
