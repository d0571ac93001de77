"""Changes of several cells in one table: each is about its cell, and about nothing else."""

import dataclasses

import pytest

from scheduler.db.fleet import Cell
from scheduler.evaluation.fleet import CaseFleet, moment
from scheduler.hosts.refresh import ReadCost
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.rows import Ratios, TableUpdater
from scheduler.hosts.table import HostTable
from tests.unit.evaluation.builders import NOW, a_node, a_service

ONE, TWO = Cell("c1", 1), Cell("c2", 2, disabled=True)


def of(cell, *hosts, instances=(), deleted=0, **changes):
    """All that a full read of *cell* brings, but for *changes*; ids are the same in every cell."""
    fleet = CaseFleet(
        {
            "compute_nodes": [a_node(host, deleted=deleted) for host in hosts],
            "services": [a_service(host) for host in hosts],
            "instances": [{"uuid": uuid, "host": host, "node": host} for uuid, host in instances],
        }
    )
    [found] = fleet.read(moment(NOW))
    return dataclasses.replace(found, cell=cell, **changes)


def by_change(cell, *hosts, services=None, **changes):
    """The same as a read of changes brings it."""
    return of(cell, *hosts, **{"full": False, "services": services, **changes})


@pytest.fixture
def updater():
    """Two cells: a1 with i1 in the first, b1 with i2 in the second, with the same ids."""
    updater = TableUpdater(Reservations(HostTable()), Ratios(16.0, 1.5, 1.0), "none")
    updater.apply(of(TWO, "b1", instances=[("i2", "b1")]), 0.0, ReadCost())
    updater.apply(of(ONE, "a1", instances=[("i1", "a1")]), 0.0, ReadCost())
    return updater


def in_order(updater):
    table = updater.table
    return [(table.value(row, "host"), table.value(row, "cell_uuid")) for row in table.order]


def test_equal_ids_are_different_nodes_in_the_order_of_the_cells(updater):
    assert in_order(updater) == [("a1", "c1"), ("b1", "c2")]
    assert updater.table.cells == {"c1": False, "c2": True}


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        pytest.param(of(ONE), [("b1", "c2")], id="a cell goes"),
        pytest.param(by_change(ONE, "a1", deleted=1), [("b1", "c2")], id="a node"),
        pytest.param(by_change(ONE, "a9", deleted=1), [("b1", "c2")], id="a node, renamed before"),
        pytest.param(of(ONE, "a2"), [("a2", "c1"), ("b1", "c2")], id="another name"),
        pytest.param(
            by_change(TWO, "b2", services=of(TWO, "b2").services),
            [("a1", "c1"), ("b2", "c2")],
            id="another name, by a change",
        ),
        pytest.param(by_change(ONE, services=[]), [("b1", "c2")], id="its services go"),
    ],
)
def test_changes_of_a_cell_touch_no_other(updater, changes, left):
    updater.apply(changes, 0.0, ReadCost())
    assert in_order(updater) == left


def test_a_service_of_one_cell_leaves_that_of_the_same_id_alone(updater):
    [disabled] = CaseFleet({"services": [a_service("a1", disabled=True)]}).read(moment(NOW))
    updater.apply(by_change(ONE, changed_services=disabled.services), 0.0, ReadCost())
    services = updater.table.services
    heartbeats = {services["b1"]["id"]: {"report_count": 5}}
    updater.apply(by_change(TWO, heartbeats=heartbeats), 0.0, ReadCost())
    assert (services["a1"]["disabled"], services["b1"]["disabled"]) == (True, False)
    assert (services["a1"]["report_count"], services["b1"]["report_count"]) == (None, 5)


def test_instances_vanish_with_their_cell_only(updater):
    updater.apply(of(ONE, "a1"), 0.0, ReadCost())
    assert updater.table.host_of_instance == {"i2": "b1"}
