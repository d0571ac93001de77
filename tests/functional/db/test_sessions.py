"""A writer's own connection, on servers that close it, refuse, or find fault with a statement."""

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler import errors
from scheduler.db.sessions import IDLE_SECONDS, WriteSession
from scheduler.db.tables import claim_hosts
from tests.waiting import Clock
from tests.world import databases

OWN_ID = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
END = {"mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def session(database, clock):
    made = WriteSession(database, clock)
    yield made
    made.close()


def add_all(conn, *names):
    values = [{"host": name, "node": name, "generation": 1} for name in names]
    conn.execute(claim_hosts.insert(), values)


def adding(host):
    """Adds a host; returns which connection of the server did."""

    def add(conn):
        add_all(conn, host)
        return conn.exec_driver_sql(OWN_ID[conn.dialect.name]).scalar_one()

    return add


def hosts(database):
    with database.read() as conn:
        return sorted(conn.execute(sa.select(claim_hosts.c.host)).scalars())


def end(database, number):
    with database.write() as conn:
        conn.exec_driver_sql(END[conn.dialect.name].format(number))


def test_every_statement_is_committed_on_one_connection(database, session):
    assert session.run(adding("h1")) == session.run(adding("h2"))
    assert hosts(database) == ["h1", "h2"]


def test_an_idle_connection_that_was_closed_is_replaced(database, session, clock):
    end(database, session.run(adding("h1")))
    clock.now += 2 * IDLE_SECONDS
    session.run(adding("h2"))
    assert hosts(database) == ["h1", "h2"]


def test_a_connection_that_breaks_is_replaced_after_its_error(database, session):
    """As nobody knows whether the statement was done."""
    end(database, session.run(adding("h1")))
    with pytest.raises(db_exception.DBConnectionError):
        session.run(adding("h2"))
    session.run(adding("h3"))
    assert hosts(database) == ["h1", "h3"]


def test_an_error_of_the_caller_leaves_the_connection(database, session):
    first = session.run(adding("h1"))

    def fail(_conn):
        raise LookupError

    with pytest.raises(LookupError):
        session.run(fail)
    assert session.run(adding("h3")) == first


def test_a_statement_that_the_server_refuses_is_undone(database, session):
    session.run(adding("h1"))
    with pytest.raises(db_exception.DBDuplicateEntry):
        session.run(lambda conn: add_all(conn, "h2", "h1"))
    session.run(adding("h3"))
    assert hosts(database) == ["h1", "h3"]


def test_nothing_is_written_to_a_database_for_reading(database):
    for_reading = databases.opened(database.url, is_read_only=True)
    with for_reading as opened, pytest.raises(errors.DatabaseReadOnly):
        WriteSession(opened).run(lambda conn: conn.execute(sa.select(1)))
