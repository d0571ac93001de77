from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.db import aggregates
from scheduler.db.tables import aggregate_hosts, aggregate_metadata
from scheduler.db.tables import aggregates as table
from tests.unit.db.builders import age, columns, is_fresh


@pytest.fixture
def ssd(conn):
    return aggregates.create(conn, "ssd", {"availability_zone": "az1", "disk": "ssd"}, ["h1", "h2"])


def test_create(conn, ssd):
    assert (ssd.name, ssd.hosts, ssd.availability_zone) == ("ssd", ["h1", "h2"], "az1")
    assert ssd.metadata == {"availability_zone": "az1", "disk": "ssd"}
    assert len(ssd.uuid) == 36
    empty = aggregates.create(conn, "empty")
    assert (empty.hosts, empty.metadata) == ([], {})


def test_list(conn, ssd):
    aggregates.create(conn, "hdd", hosts=["h1"])
    found = [(one.name, one.hosts, len(one.metadata)) for one in aggregates.list_all(conn)]
    assert found == [("ssd", ["h1", "h2"], 2), ("hdd", ["h1"], 0)]


def test_find_by_name_or_id(conn, ssd):
    numeric = aggregates.create(conn, str(ssd.id))
    assert aggregates.get(conn, "ssd").id == ssd.id
    assert aggregates.get(conn, ssd.id).id == ssd.id
    assert aggregates.get(conn, str(ssd.id)).id == numeric.id
    assert aggregates.get(conn, str(numeric.id)).id == numeric.id


@pytest.mark.parametrize(
    ("change", "hosts", "metadata"),
    [
        (lambda c, i: aggregates.add_host(c, i, "h3"), ["h1", "h2", "h3"], None),
        (lambda c, i: aggregates.remove_host(c, i, "h1"), ["h2"], None),
        (
            lambda c, i: aggregates.set_metadata(c, i, {"disk": "nvme"}),
            None,
            {"availability_zone": "az1", "disk": "nvme"},
        ),
        (
            lambda c, i: aggregates.set_metadata(c, i, {"availability_zone": None, "new": "1"}),
            None,
            {"disk": "ssd", "new": "1"},
        ),
    ],
    ids=["add host", "remove host", "change text", "remove and add text"],
)
def test_every_change_moves_updated_at(conn, ssd, change, hosts, metadata):
    for each in (table, aggregate_hosts, aggregate_metadata):
        age(conn, each)
    change(conn, ssd.id)
    found = aggregates.get(conn, ssd.id)
    assert found.hosts == (hosts or ssd.hosts)
    assert found.metadata == (metadata or ssd.metadata)
    assert is_fresh(columns(conn, table)[0]["updated_at"])


def test_rename(conn, ssd):
    age(conn, table)
    aggregates.rename(conn, ssd.id, "flash")
    assert aggregates.get(conn, ssd.id).name == "flash"
    assert is_fresh(columns(conn, table)[0]["updated_at"])
    other = aggregates.create(conn, "hdd")
    with pytest.raises(errors.AlreadyExists, match="flash"), conn.begin_nested():
        aggregates.rename(conn, other.id, "flash")


def test_delete_leaves_nothing(conn, ssd):
    aggregates.delete(conn, ssd.id)
    assert [columns(conn, each) for each in (table, aggregate_hosts, aggregate_metadata)] == [
        []
    ] * 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: aggregates.get(c, "no"), errors.AggregateNotFound),
        (lambda c: aggregates.get(c, 999), errors.AggregateNotFound),
        (lambda c: aggregates.get(c, "²"), errors.AggregateNotFound),
        (lambda c: aggregates.delete(c, 999), errors.AggregateNotFound),
        (lambda c: aggregates.rename(c, 999, "x"), errors.AggregateNotFound),
        (lambda c: aggregates.add_host(c, 999, "h1"), errors.AggregateNotFound),
        (lambda c: aggregates.set_metadata(c, 999, {}), errors.AggregateNotFound),
        (lambda c: aggregates.remove_host(c, _only(c), "no"), errors.AggregateHostNotFound),
        (lambda c: aggregates.create(c, "ssd"), errors.AlreadyExists),
        (lambda c: aggregates.add_host(c, _only(c), "h1"), errors.AlreadyExists),
    ],
)
def test_refused(conn, ssd, call, error):
    with pytest.raises(error), conn.begin_nested():
        call(conn)


def _only(conn):
    return aggregates.list_all(conn)[0].id
