"""Aggregates are read again when one of them has changed, and only then."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from scheduler import errors
from scheduler.db import aggregates, tables
from scheduler.db.aggregates import AggregateReader
from scheduler.db.database import Database


@pytest.fixture
def reader(database: Database) -> Iterator[AggregateReader]:
    """One that has read two aggregates."""
    with database.write() as connection:
        aggregates.create(connection, "ssd", {"disk": "ssd"}, ["h1", "h2"])
        aggregates.create(connection, "hdd", {"disk": "hdd"}, ["h3"])
    made = AggregateReader(database)
    assert [each.name for each in made.read()] == ["ssd", "hdd"]
    yield made
    database.dispose()


def exchange_hosts(connection: Connection, number: int) -> None:
    """As many members as before, of the same aggregates."""
    aggregates.remove_host(connection, number, "h2")
    aggregates.add_host(connection, number, "h4")


#: What is done to the first of the two aggregates, whose id is given.
CHANGES: dict[str, Callable[[Connection, int], Any]] = {
    "renamed, the first": lambda conn, number: aggregates.rename(conn, number, "flash"),
    "renamed, the second": lambda conn, number: aggregates.rename(conn, number + 1, "disks"),
    "other metadata": lambda conn, number: aggregates.set_metadata(conn, number, {"disk": "nvme"}),
    "a host more": lambda conn, number: aggregates.add_host(conn, number + 1, "h4"),
    "another host": exchange_hosts,
    "one more": lambda conn, number: aggregates.create(conn, "new"),
    "one less": lambda conn, number: aggregates.delete(conn, number + 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_once(reader: AggregateReader, database: Database, change: str) -> None:
    before = reader.read()
    assert reader.read() is before
    with database.write() as connection:
        CHANGES[change](connection, before[0].id)
        expected = aggregates.list_all(connection)
    found = reader.read()
    assert [(a.name, a.hosts, a.metadata) for a in found] == [
        (a.name, a.hosts, a.metadata) for a in expected
    ]
    assert found != before
    assert reader.read() is found
    assert reader.read(full=True) is not found


def test_a_host_that_nova_takes_out_is_found_beside_the_reads(reader, database):
    reader.read_beside(None)
    before = reader.read()
    with database.write() as connection:
        gone = tables.aggregate_hosts.c.host == "h1"
        connection.execute(tables.aggregate_hosts.delete().where(gone))
    reader.read_beside(None)
    found = reader.read()
    assert [each.hosts for each in found] == [["h2"], ["h3"]] != [each.hosts for each in before]


def test_after_a_read_that_failed_all_are_read(reader, database, monkeypatch):
    def away(*_arguments: Any) -> None:
        raise SQLAlchemyError("away")

    with database.write() as connection:
        aggregates.rename(connection, reader.read()[0].id, "flash")
    with monkeypatch.context() as patched:
        patched.setattr(aggregates, "list_all", away)
        with pytest.raises(errors.DatabaseUnusable):
            reader.read()
    assert [each.name for each in reader.read()] == ["flash", "hdd"]
