import datetime

import pytest

from conductor_stub.compute import registration
from scheduler import errors
from scheduler.db import services
from scheduler.db.database import Database
from scheduler.db.tables import services as services_table
from tests.unit.db.builders import NOW, columns, delete_host

BINARY = "nova-compute"


def make(conn, host="h1", binary=BINARY, topic="compute", **options):
    return services.get_or_create(conn, host, binary, topic, 74, **options)


def test_a_new_service_has_every_value_that_nova_cannot_read_as_null(conn):
    made = make(conn, disabled=True, reason="AUTO: new")
    (row,) = columns(conn, services_table)
    assert (row["deleted"], row["disabled"], row["forced_down"]) == (0, True, False)
    assert (row["report_count"], row["version"], row["topic"]) == (0, 74, "compute")
    assert (len(row["uuid"]), row["created_at"].microsecond) == (36, 0)
    assert (made.host, made.id, made.disabled_reason) == ("h1", row["id"], "AUTO: new")
    with pytest.raises(errors.AlreadyExists), conn.begin_nested():
        make(conn, binary="nova-other")


def test_a_second_start_finds_its_row_and_renews_the_version(conn):
    first = make(conn)
    again = services.get_or_create(conn, "h1", BINARY, "compute", 75, disabled=True)
    assert (again.id, again.version, again.disabled) == (first.id, 75, False)
    ids = registration.put_services(conn, ["h0", "h1", "h2"], 76)
    assert ids["h1"] == first.id
    assert {each.host: each.id for each in services.list_all(conn)} == ids
    assert {each.version for each in services.list_all(conn)} == {76}


def test_losing_the_race_for_the_row_gives_the_winner_s(database: Database, monkeypatch):
    with database.write() as conn:
        winner = make(conn)
    searches = iter([None])
    find = services.find
    # The first look came before the winner's commit.
    monkeypatch.setattr(services, "find", lambda *args: next(searches, find(*args)))
    with database.write() as conn:
        assert make(conn).id == winner.id
        assert len(columns(conn, services_table)) == 1


def test_heartbeats_move_times_and_count_while_there_is_a_row(conn, monkeypatch):
    monkeypatch.setattr("scheduler.db.rows.BATCH", 2)
    ids = registration.put_services(conn, ["h1", "h2", "h3"], 74)
    assert services.heartbeat(conn, [ids["h1"]], NOW) == 1
    delete_host(conn, "h3")
    assert not services.heartbeat(conn, [ids["h3"]], NOW)
    moment = NOW + datetime.timedelta(seconds=1)
    assert services.heartbeat(conn, list(ids.values()), moment) == 2
    found = columns(conn, services_table)
    assert [(row["report_count"], row["last_seen_up"]) for row in found] == [
        (2, moment),
        (1, moment),
        (0, None),
    ]
    assert [row["updated_at"] for row in found[:2]] == [moment] * 2


def test_services_by_binary_and_by_exact_host(conn):
    make(conn)
    make(conn, "H1")
    make(conn, binary="nova-scheduler", topic="scheduler")
    assert len(services.list_all(conn)) == 3
    assert services.get(conn, "H1", BINARY).host == "H1"
    assert [one.binary for one in services.list_all(conn, "nova-scheduler")] == ["nova-scheduler"]
