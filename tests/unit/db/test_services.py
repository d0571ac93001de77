from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.db import services
from scheduler.db.database import Database
from scheduler.db.tables import services as table
from tests.unit.db.builders import NOW, age, columns, delete_host, is_fresh, seconds

BINARY = "nova-compute"


def make(conn, host="h1", binary=BINARY, topic="compute", **options):
    return services.get_or_create(conn, host, binary, topic, 74, **options)


def test_new_row_has_every_value_that_nova_cannot_read_as_null(conn):
    made = make(conn)
    (row,) = columns(conn, table)
    assert (row["deleted"], row["disabled"], row["forced_down"]) == (0, False, False)
    assert (row["report_count"], row["version"], row["topic"]) == (0, 74, "compute")
    assert len(row["uuid"]) == 36
    assert is_fresh(row["created_at"])
    assert row["created_at"].microsecond == 0
    assert (made.host, made.binary, made.id) == ("h1", BINARY, row["id"])


def test_second_start_finds_its_row_and_renews_the_version(conn):
    first = make(conn)
    again = services.get_or_create(conn, "h1", BINARY, "compute", 75, disabled=True)
    assert (again.id, again.version, again.disabled) == (first.id, 75, False)
    assert len(columns(conn, table)) == 1


def test_losing_the_race_for_the_row_gives_the_winner_s(database: Database, monkeypatch):
    with database.write() as conn:
        winner = make(conn)
    searches = iter([None])
    find = services._find
    # The first look came before the winner's commit.
    monkeypatch.setattr(services, "_find", lambda *args: next(searches, find(*args)))
    with database.write() as conn:
        assert make(conn).id == winner.id
        assert len(columns(conn, table)) == 1


def test_other_binary_with_the_topic_of_the_host_is_refused(conn):
    made = make(conn, disabled=True, reason="AUTO: new")
    assert (made.disabled, made.disabled_reason) == (True, "AUTO: new")
    with pytest.raises(errors.AlreadyExists), conn.begin_nested():
        make(conn, binary="nova-other")


def test_create_many_adds_only_what_is_missing(conn):
    old = services.get_or_create(conn, "h1", BINARY, "compute", 60)
    ids = services.create_many(conn, ["h0", "h1", "h2"], BINARY, "compute", 74)
    assert ids["h1"] == old.id
    assert {service.host: service.id for service in services.list_all(conn)} == ids
    assert {service.version for service in services.list_all(conn)} == {74}


def test_heartbeat_moves_both_times_and_the_count_while_there_is_a_row(conn):
    made = make(conn)
    assert services.heartbeat(conn, made.id, 5, NOW)
    (row,) = columns(conn, table)
    assert (row["report_count"], row["last_seen_up"], row["updated_at"]) == (5, NOW, NOW)
    delete_host(conn, "h1")
    assert not services.heartbeat(conn, made.id, 5, NOW)
    assert services.heartbeat_many(conn, [made.id], NOW) == 0


def test_many_heartbeats_count_each_row_on(conn):
    ids = services.create_many(conn, ["h1", "h2", "h3"], BINARY, "compute", 74)
    services.heartbeat(conn, ids["h1"], 8, NOW)
    assert services.heartbeat_many(conn, [ids["h1"], ids["h2"]], NOW + seconds(1)) == 2
    found = [(row["report_count"], row["last_seen_up"]) for row in columns(conn, table)]
    assert found == [(9, NOW + seconds(1)), (1, NOW + seconds(1)), (0, None)]


def test_more_rows_than_fit_into_one_statement(conn, monkeypatch):
    monkeypatch.setattr("scheduler.db.rows.BATCH", 2)
    ids = services.create_many(conn, [f"h{n}" for n in range(5)], BINARY, "compute", 74)
    assert len(ids) == 5
    assert services.heartbeat_many(conn, list(ids.values()), NOW) == 5


def test_switching_off_and_on(conn):
    make(conn)
    age(conn, table)
    services.set_disabled(conn, "h1", BINARY, True, "broken fan")
    (row,) = columns(conn, table)
    assert (row["disabled"], row["disabled_reason"]) == (True, "broken fan")
    assert is_fresh(row["updated_at"])
    assert row["last_seen_up"] is None
    services.set_disabled(conn, "h1", BINARY, False, "ignored")
    services.set_forced_down(conn, "h1", BINARY, True)
    (row,) = columns(conn, table)
    assert (row["disabled_reason"], row["forced_down"]) == (None, True)


@pytest.mark.parametrize(
    "call",
    [
        lambda conn: services.get(conn, "no", BINARY),
        lambda conn: services.set_disabled(conn, "no", BINARY, True),
        lambda conn: services.set_forced_down(conn, "no", BINARY, True),
    ],
)
def test_missing_service(conn, call):
    with pytest.raises(errors.ServiceNotFound, match="nova-compute on no"):
        call(conn)


def test_list_all_by_binary_and_get_by_exact_host(conn):
    make(conn)
    make(conn, "H1")
    make(conn, binary="nova-scheduler", topic="scheduler")
    assert len(services.list_all(conn)) == 3
    assert services.get(conn, "H1", BINARY).host == "H1"
    assert [one.binary for one in services.list_all(conn, "nova-scheduler")] == ["nova-scheduler"]
