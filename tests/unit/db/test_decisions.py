import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from scheduler.db import decisions, flavors, rows, services, tables
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.db.overview import Overview
from tests.builders import a_conf, a_request
from tests.unit.db.builders import columns


def told(number: int) -> dict[str, Any]:
    return {
        "request_id": f"req-{number}",
        "instance_uuids": [f"uuid-{number}", "uuid-of-all", "no uuid at all" * 5],
        "num_instances": 3,
        "outcome": "no_host_fits",
        "cause": "No host fits: \u00bd.",
    }


def found(conn: sa.Connection, name: str) -> list[str | None]:
    return [each["request_id"] for each in decisions.find(conn, name)]


def test_records_are_found_by_request_and_instance(conn: sa.Connection) -> None:
    for number in range(3):
        decisions.add(conn, told(number), "sched1", rows.utcnow())
    assert decisions.find(conn, "req-1") == [told(1)]
    assert found(conn, "uuid-2") == ["req-2"]
    assert found(conn, "uuid-of-all") == ["req-2", "req-1", "req-0"]
    assert found(conn, "else") == []
    decisions.add(conn, {**told(4), "instance_uuids": []}, "sched1", rows.utcnow())
    assert (found(conn, "req-4"), found(conn, "")) == (["req-4"], [])


@pytest.mark.parametrize(
    ("days_kept", "most", "left"), [(7, 10, 6), (7, 4, 4), (2, 10, 2), (2, 1, 1), (1, 10, 1)]
)
def test_old_and_superfluous_records_go(conn, days_kept, most, left):
    now = rows.utcnow()
    for number in range(6):
        decisions.add(conn, told(number), "sched1", now - datetime.timedelta(days=5 - number))
    before = now - datetime.timedelta(days=days_kept) + datetime.timedelta(hours=1)
    assert decisions.purge(conn, before, most) == 6 - left
    assert len(columns(conn, tables.decision_instances)) == 2 * left
    assert found(conn, "uuid-of-all") == [f"req-{n}" for n in range(5, 5 - left, -1)]


def test_counts_of_a_daemon_since_a_time_and_what_is_shown_with_them(database):
    now, conf = rows.utcnow(), a_conf(explain__database=True, DEFAULT__host="sched1")
    with database.write() as conn:
        for hours, daemon in ((0.5, "sched1"), (2, "sched1"), (30, "sched1"), (0.5, "sched2")):
            decisions.add(conn, told(1), daemon, now - datetime.timedelta(hours=hours))
        nameless = {**told(2), "instance_uuids": [], "outcome": "selected", "num_instances": 5}
        decisions.add(conn, nameless, "sched1", now)
        services.get_or_create(conn, "sched1", "nova-scheduler", "scheduler", 1)
        flavors.create(conn, a_request(flavor={"name": "gone", "disabled": True}).flavor)
    shown = Overview(Databases(database), conf, "nova-scheduler")
    shown.read()
    found = shown.latest()
    assert found["recorded"] == {
        "hour": {
            "no_host_fits": {"decisions": 1, "servers": 2},
            "selected": {"decisions": 1, "servers": 5},
        },
        "day": {
            "no_host_fits": {"decisions": 2, "servers": 4},
            "selected": {"decisions": 1, "servers": 5},
        },
    }
    assert [(each["host"], each["is_up"]) for each in found["schedulers"]] == [("sched1", True)]
    assert {"m1.tiny", "gone"} & {each.name for each in found["flavors"]} == {"m1.tiny"}
    assert (shown.decision("req-1"), shown.decision("else")) == (told(1), None)
    away = Overview(Databases(Database("sqlite://")), conf, "nova-scheduler")
    away.read()
    assert "no such table" in away.latest()["error"]
    assert away.latest()["recorded"] is None
