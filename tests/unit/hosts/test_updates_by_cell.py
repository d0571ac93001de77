"""Changes of several cells in one table: each is about its cell, and about nothing else."""

import datetime
from types import SimpleNamespace

import pytest

from scheduler.db import tables
from scheduler.db.fleet import Cell, FleetChanges
from scheduler.hosts.refresh import ReadCost
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.rows import Ratios, TableUpdater
from scheduler.hosts.table import HostTable
from tests.unit.hosts.reading import NODE

NOW = datetime.datetime(2026, 11, 21, 12)
ONE, TWO = Cell("c1", 1), Cell("c2", 2, disabled=True)


def a_row(table, **values):
    columns = {**dict.fromkeys(table.c.keys()), "deleted": 0, "updated_at": NOW, **values}
    return SimpleNamespace(**columns, _mapping=columns)


def a_node(number, host, **values):
    names = {"id": number, "host": host, "hypervisor_hostname": host, "stats": "{}"}
    return a_row(tables.compute_nodes, **{**NODE, **names, **values})


def a_service(host, **values):
    return a_row(tables.services, host=host, binary="nova-compute", **values)


def an_instance(uuid, host):
    return a_row(tables.instances, uuid=uuid, host=host, node=host)


def of(cell, *nodes, full=True, services=None, flagged=(), instances=()):
    hosts = [node.host for node in nodes]
    if services is None and full:
        services = [a_service(host) for host in hosts]
    return FleetChanges(
        full=full,
        read_at=NOW,
        nodes=nodes,
        instances=instances,
        services=services,
        heartbeats=(),
        flagged={host: (True, False) for host in flagged},
        aggregates=None,
        cell=cell,
    )


@pytest.fixture
def updater():
    """Two cells: a1 with i1 in the first, b1 with i2 in the second, with the same ids."""
    updater = TableUpdater(Reservations(HostTable()), Ratios(16.0, 1.5, 1.0), "none")
    updater.apply(of(TWO, a_node(1, "b1"), instances=[an_instance("i2", "b1")]), 0.0, ReadCost())
    updater.apply(of(ONE, a_node(1, "a1"), instances=[an_instance("i1", "a1")]), 0.0, ReadCost())
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
        pytest.param(of(ONE, a_node(1, "a1", deleted=1), full=False), [("b1", "c2")], id="a node"),
        pytest.param(of(ONE, a_node(1, "a2")), [("a2", "c1"), ("b1", "c2")], id="another name"),
        pytest.param(
            of(TWO, a_node(1, "b2"), full=False, services=[a_service("b2")]),
            [("a1", "c1"), ("b2", "c2")],
            id="another name, by a change",
        ),
        pytest.param(of(ONE, full=False, services=[]), [("b1", "c2")], id="its services go"),
    ],
)
def test_changes_of_a_cell_touch_no_other(updater, changes, left):
    updater.apply(changes, 0.0, ReadCost())
    assert in_order(updater) == left


def test_flags_of_one_cell_leave_the_other_cells_alone(updater):
    updater.apply(of(ONE, full=False, flagged=["a1"]), 0.0, ReadCost())
    updater.apply(of(TWO, full=False), 0.0, ReadCost())
    services = updater.table.services
    assert (services["a1"]["disabled"], services["b1"]["disabled"]) == (True, None)


def test_instances_vanish_with_their_cell_only(updater):
    updater.apply(of(ONE, a_node(1, "a1")), 0.0, ReadCost())
    assert updater.table.host_of_instance == {"i2": "b1"}
