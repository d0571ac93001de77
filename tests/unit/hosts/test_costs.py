"""What reads of the hosts are said to cost."""

from __future__ import annotations

import datetime
import logging
import time

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler.db import compute_nodes, tables
from scheduler.hosts.refresh import MISSED_AFTER_SECONDS, ReadCost
from tests.unit.hosts.reading import change, utc_now, value

LONG = datetime.timedelta(seconds=MISSED_AFTER_SECONDS * 3)


@pytest.fixture
def told(manager) -> list[ReadCost]:
    """What is told of the reads from now on."""
    costs: list[ReadCost] = []
    manager.read_listeners.append(costs.append)
    return costs


def test_reads_of_changes_and_of_everything(manager, database, told):
    manager.refresh()
    change(database, compute_nodes.update_usage, 2, {"free_ram_mb": 100})
    manager.refresh()
    manager.refresh_everything()
    assert [(cost.full, cost.rows > 0) for cost in told] == [
        (False, False),
        (False, True),
        (True, True),
    ]
    assert told[-1].rows >= 3
    assert all(cost.seconds > 0 and not cost.failed and not cost.repairs for cost in told)


@pytest.mark.parametrize(
    ("written_ago", "repairs"),
    [(LONG, 1), (datetime.timedelta(0), 0)],
    ids=["long ago", "just now"],
)
def test_repairs(manager, database, clock, told, written_ago, repairs):
    nodes = tables.compute_nodes
    manager.refresh()
    clock.ahead_seconds = 1.0
    written_at = utc_now() - written_ago
    with database.write() as connection:
        connection.execute(
            sa.update(nodes).where(nodes.c.id == 2).values(free_ram_mb=123, updated_at=written_at)
        )
    manager.refresh_everything()
    assert value(manager, "h2", "free_ram_mb") == 123
    assert (told[-1].full, told[-1].repairs) == (True, repairs)
    manager.refresh_everything()
    assert told[-1].repairs == 0, "it is known now"


def refuse(*_arguments, **_more):
    raise db_exception.DBConnectionError()


def test_a_read_that_fails(manager, told, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(manager._reader, "read", refuse)
    manager.refresh()
    manager.refresh(time.monotonic() - 60)  # served by an earlier read, which ends no failure
    assert ([cost.failed for cost in told], manager.is_failing) == ([True], True)
    assert "being read again" not in caplog.text
    monkeypatch.undo()
    manager.refresh()
    assert ([cost.failed for cost in told], manager.is_failing) == ([True, False], False)
    assert caplog.text.count("being read again") == 1
