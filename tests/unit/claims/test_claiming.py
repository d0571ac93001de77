"""Claims are written as a whole or not at all; where the server can, in one round trip."""

import functools

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler.db import claims as claim_rows
from scheduler.db import rows, tables
from scheduler.db.claims import Move
from scheduler.db.database import is_atomic
from scheduler.db.sessions import WriteSession
from tests.unit.claims.fleets import a_name

#: What a text that is put together carelessly would stumble over.
ODD = 'it\'s 100 % \\ "ü"\n{names} %s :name ; -- '


KEYS = [("h1", "n1"), ("h2", "")]


@pytest.fixture
def session(database):
    made = WriteSession(database)
    yield made
    made.close()


@pytest.fixture
def hosts(database):
    """Ids of hosts that are at generation 5."""
    begun = claim_rows.begin(database, KEYS)
    with database.connect() as connection, connection.begin():
        connection.execute(tables.claim_hosts.update().values(generation=5))
    return {row.host: row.id for row in begun.values()}


def a_claim(consumer, host="h1", request_id="req-1"):
    values = claim_rows.refusal(consumer, request_id, ODD, rows.utcnow())
    del values["closed_at"]
    return {**values, "host": host, "node": host, "source_host": ODD, "generation": 6}


def found(database):
    """Generations by host, and all claims by consumer."""
    hosts = claim_rows.known_hosts(database, KEYS)
    generations = {row.host: row.generation for row in hosts.values()}
    with database.read() as conn:
        all_rows = conn.execute(sa.select(tables.claims)).all()
    return generations, {row.consumer_uuid: row for row in all_rows}


def claim(session, moves, values, replaced=(), aside=()):
    now = rows.utcnow()
    return session.run(lambda conn: claim_rows.claim(conn, moves, values, now, replaced, aside))


def test_all_is_written_as_it_was_given(database, session, hosts):
    several = [a_claim(a_name()), a_claim(a_name(), "h2"), a_claim(a_name(), "h2")]
    steps = [Move(hosts["h1"], 5, 6), Move(hosts["h2"], 5, 7)]
    returned = claim(session, steps, several)
    generations, written = found(database)
    assert generations == {"h1": 6, "h2": 7}
    for values in several:
        row = written[values["consumer_uuid"]]
        assert {name: getattr(row, name) for name in values} == values
        assert row.closed_at is None
    by_id = {row.id: row for row in written.values()}
    assert len(returned) == len(several)
    for row in returned:
        assert all(getattr(by_id[row.id], name) == row._mapping[name] for name in row._mapping)


@pytest.mark.parametrize("case", ["moved", "gone", "claimed"])
def test_nothing_is_written_if_anything_has_changed(database, session, hosts, case):
    name = a_name()
    claim(session, [Move(hosts["h1"], 5, 6)], [a_claim(name)])
    before = found(database)
    steps = {
        "moved": [Move(hosts["h1"], 5, 8), Move(hosts["h2"], 5, 8)],
        "gone": [Move(hosts["h2"], 5, 8), Move(hosts["h2"] + 1000, 5, 8)],
        "claimed": [Move(hosts["h2"], 5, 8)],
    }[case]
    several = [a_claim(a_name(), "h2"), a_claim(name if case == "claimed" else a_name())]
    expected = db_exception.DBDuplicateEntry if case == "claimed" else claim_rows.Moved
    with pytest.raises(expected):
        claim(session, steps, several)
    assert found(database) == before
    steps = [Move(hosts["h1"], 6, 7), Move(hosts["h2"], 5, 6)]
    claim(session, steps, [a_claim(a_name())])
    assert found(database)[0] == {"h1": 7, "h2": 6}


def of_consumer(database, name):
    """Request, and whether it is open, of all that was written for a consumer."""
    with database.read() as conn:
        found = claim_rows.of_consumers(conn, [name])
    return {row.id: (row.request_id, row.closed_at is None) for row in found}


def test_the_claim_of_an_earlier_request_is_closed(database, session, hosts):
    name = a_name()
    for number, request_id in enumerate(("req-1", "req-2"), 5):
        step, before = [Move(hosts["h1"], number, number + 1)], of_consumer(database, name)
        claim(session, step, [a_claim(name, request_id=request_id)], before)
    found = of_consumer(database, name)
    assert [*found.values()] == [("req-1", False), ("req-2", True)]


def test_a_claim_of_the_same_request_is_set_aside(database, session, hosts):
    name, other = a_name(), a_name()
    claim(session, [Move(hosts["h1"], 5, 6)], [a_claim(name)])
    claim(session, [Move(hosts["h1"], 6, 7)], [a_claim(other)])
    [before] = of_consumer(database, name)
    claim(session, [Move(hosts["h1"], 7, 8)], [a_claim(name)], aside=[before])
    found = of_consumer(database, name)
    assert [*found.values()] == [("req-1", True)]
    assert before not in found
    assert [*of_consumer(database, other).values()] == [("req-1", True)]


def test_a_claim_is_one_round_trip_where_the_server_can(database, session, hosts):
    session.run(lambda conn: None)
    asked = []

    def note(event, *_details):
        asked.append(event)

    for event in ("before_cursor_execute", "commit", "rollback"):
        sa.event.listen(database.engine, event, functools.partial(note, event))
    for number in range(5, 8):
        step = [Move(hosts["h1"], number, number + 1)]
        claim(session, step, [a_claim(a_name())])
    assert (len(asked) == 3) is is_atomic(database.engine.dialect)
