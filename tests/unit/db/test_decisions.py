import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from scheduler.db import decisions, rows, tables
from tests.unit.db.builders import columns


def told(number: int) -> dict[str, Any]:
    """A record as it is written."""
    return {
        "request_id": f"req-{number}",
        "instance_uuids": [f"uuid-{number}", "uuid-of-all", "no uuid at all" * 5],
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
