"""The rows of a case, read like those of a database, and changed by its steps."""

import datetime

import pytest

from scheduler.db.fleet import Cell
from scheduler.evaluation.fleet import CREATED_AT, CaseFleet, moment
from tests.unit.evaluation.builders import a_fleet, a_node, a_service

READ_AT = datetime.datetime(2026, 11, 21)


def names(fleet):
    return [(row.host, row.free_ram_mb) for each in fleet.read(READ_AT) for row in each.nodes]


@pytest.mark.parametrize("text", ["2026-11-21T00:00:00Z", "2026-11-21T01:00:00+01:00"])
def test_times_are_naive_utc(text):
    assert moment(text) == READ_AT


def test_a_read_is_everything():
    aggregate = {"id": 1, "uuid": "u", "name": "a", "hosts": ["h1"], "metadata": {"k": "v"}}
    instance = {"host": "h1", "node": "h1", "uuid": "i1"}
    services = [a_service("h1", disabled=True), a_service("net", binary="nova-network")]
    fleet = CaseFleet(
        a_fleet(1, services=services, aggregates=[aggregate], instances=[instance])
        | {"cells": [{"uuid": "c1", "hosts": ["h1"]}]}
    )
    outside, changes = fleet.read(READ_AT)
    assert (outside.full, outside.cell, outside.nodes, outside.services) == (True, None, [], [])
    assert (changes.full, changes.cell, changes.aggregates) == (True, Cell("c1"), None)
    assert [row.host for row in changes.services] == ["h1"]
    assert changes.flagged == {"h1": (True, False)}
    assert [each.metadata for each in outside.aggregates] == [{"k": "v"}]
    assert [(row.uuid, row.deleted) for row in changes.instances] == [("i1", 0)]
    (node,) = changes.nodes
    assert (node.updated_at.second, node.created_at, node.pci_stats) == (30, CREATED_AT, None)


def test_steps_change_rows():
    fleet = CaseFleet(a_fleet(1, 2, 3))
    fleet.change(
        {
            "compute_nodes": [a_node("h2", 2, free_ram_mb=20), a_node("h4", 4, free_ram_mb=4)],
            "delete_nodes": [["h1", "h1"]],
        }
    )
    assert sorted(names(fleet)) == [("h2", 20), ("h3", 3), ("h4", 4)]


def test_steps_replace_tables():
    fleet = CaseFleet(a_fleet(1, 2))
    fleet.change({"services": [a_service("h2")], "aggregates": [{"id": 7, "hosts": []}]})
    assert [row.host for row in fleet.services("compute")] == ["h2"]
    assert fleet.services("network") == []
    assert [each.id for each in fleet.read(READ_AT)[0].aggregates] == [7]
    assert names(fleet) == [("h1", 1), ("h2", 2)]
