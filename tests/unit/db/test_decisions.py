from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from scheduler.db import decisions, rows, tables
from scheduler.db.database import Database


def told(number: int) -> dict[str, Any]:
    """A record as it is written."""
    return {
        "request_id": f"req-{number}",
        "instance_uuids": [f"uuid-{number}", "uuid-of-all", "no uuid at all" * 5],
        "outcome": "no_host_fits",
        "cause": "No host fits: \u00bd.",
    }


def found(database: Database, name: str) -> list[str | None]:
    with database.read() as connection:
        return [each["request_id"] for each in decisions.find(connection, name)]


def test_records_are_found_by_request_and_instance(database: Database) -> None:
    with database.write() as connection:
        for number in range(3):
            decisions.add(connection, told(number), "sched1", rows.utcnow())
        assert decisions.find(connection, "req-1") == [told(1)]
    assert found(database, "uuid-2") == ["req-2"]
    assert found(database, "uuid-of-all") == ["req-2", "req-1", "req-0"]
    assert found(database, "else") == []


@pytest.mark.parametrize(
    ("days_kept", "most", "left"),
    [(7, 10, 6), (7, 4, 4), (2, 10, 2), (2, 1, 1), (1, 10, 1)],
)
def test_old_and_superfluous_records_go(
    database: Database, days_kept: float, most: int, left: int
) -> None:
    now = rows.utcnow()
    with database.write() as connection:
        for number in range(6):
            when = now - datetime.timedelta(days=5 - number)
            decisions.add(connection, told(number), "sched1", when)
        before = now - datetime.timedelta(days=days_kept) + datetime.timedelta(hours=1)
        assert decisions.purge(connection, before, most) == 6 - left
        instances = connection.execute(
            sa.select(sa.func.count()).select_from(tables.decision_instances)
        ).scalar()
    assert instances == 2 * left
    assert found(database, "uuid-of-all") == [f"req-{n}" for n in range(5, 5 - left, -1)]
