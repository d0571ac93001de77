"""Reads of the fleet while others write, on servers."""

import contextlib
import datetime
import itertools

import pytest
import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.fleet import FleetReader
from tests.builders import put_node
from tests.unit.db.builders import node_values

OVERLAP = datetime.timedelta(seconds=60)


def now():
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def report(database, host, free_ram_mb):
    with database.write() as connection:
        put_node(connection, host, host, node_values(free_ram_mb=free_ram_mb))


@pytest.fixture
def reader(database):
    yield FleetReader(database, OVERLAP)
    database.dispose()  # what sessions have set must not get into the pool


def changes_of(reader, *, full):
    changes = reader.read(now(), full=full)
    return {row.host: row.free_ram_mb for row in changes.nodes}


@contextlib.contextmanager
def written_after(database, number, write):
    """Have *write* done once: when so many queries were answered, or else at the end."""
    answered = itertools.count(1)
    pending = [write]

    def after(_connection, _cursor, statement, *_rest):
        if statement.startswith("SELECT") and next(answered) == number:
            pending.pop()()

    sa.event.listen(database.engine, "after_cursor_execute", after)
    try:
        yield
    finally:
        sa.event.remove(database.engine, "after_cursor_execute", after)
    for each in pending:
        each()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_read_is_of_one_snapshot(database, reader, number, full):
    """One host is emptied, then the other filled during the read: there was room all the time."""
    report(database, "filled", 4096)
    report(database, "emptied", 0)
    known = changes_of(reader, full=False)
    report(database, "filled", 2048)

    def write():
        report(database, "emptied", 4096)
        report(database, "filled", 0)

    with written_after(database, number, write):
        known |= changes_of(reader, full=full)
    assert known in ({"filled": 2048, "emptied": 0}, {"filled": 0, "emptied": 4096})
    known |= changes_of(reader, full=False)
    assert known == {"filled": 0, "emptied": 4096}


def test_no_change_is_lost_with_a_connection(database, reader):
    """It breaks between the poll that names the changed rows and the reading of these."""
    report(database, "h1", 4096)
    changes_of(reader, full=False)
    report(database, "h1", 2048)
    polls = itertools.count(1)

    def cut(connection, _cursor, statement, *_rest):
        if "changes" in statement and next(polls) == 2:
            connection.connection.driver_connection.close()

    sa.event.listen(database.engine, "after_cursor_execute", cut)
    try:
        assert changes_of(reader, full=False) == {"h1": 2048}
    finally:
        sa.event.remove(database.engine, "after_cursor_execute", cut)


def test_an_interrupted_read_keeps_no_snapshot(database, reader):
    report(database, "h1", 4096)
    changes = reader.read(now())
    rows = iter(changes.nodes)
    assert next(rows).free_ram_mb == 4096
    del rows, changes  # before the last of the rows was taken
    report(database, "h1", 0)
    assert changes_of(reader, full=False) == {"h1": 0}


def test_a_read_leaves_no_transaction_open(database, reader):
    report(database, "h1", 4096)
    changes_of(reader, full=False)
    report(database, "h1", 0)
    changes_of(reader, full=False)
    with database.write() as connection:  # would wait for a reader that still looks
        connection.execute(sa.delete(tables.compute_nodes))
    if database.dialect_name == "mysql":
        query = "SELECT COUNT(*) FROM information_schema.innodb_trx"
        with database.read() as connection:
            assert connection.execute(sa.text(query)).scalar() <= 1  # this one
