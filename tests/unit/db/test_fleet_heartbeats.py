"""In a large fleet heartbeats are read in parts that take turns."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from scheduler.db import fleet_heartbeats, services, tables
from scheduler.db.database import Database
from scheduler.db.fleet_heartbeats import HeartbeatReader
from tests.unit.db.builders import NOW, seconds

HOSTS = ["h1", "h2", "h3", "h4"]


class Served:
    """A reader of four services, each a part of its own, that began at NOW."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.write() as connection:
            services.create_many(connection, HOSTS, "nova-compute", "compute", 74)
            self.ids = list(connection.execute(sa.select(tables.services.c.id)).scalars())
            services.heartbeat_many(connection, self.ids, NOW - seconds(600))
        self.reader = HeartbeatReader(database.dialect_name, seconds(60), lambda: 0.0)
        with database.read() as connection:
            self.reader.begin(connection, NOW)

    def beat(self, at_second: float) -> None:
        with self.database.write() as connection:
            services.heartbeat_many(connection, self.ids, NOW + seconds(int(at_second)))

    def heard(self, at_second: float) -> int:
        """Of how many hosts a read at that time hears."""
        with self.database.read() as connection:
            return len(self.reader.read(connection, NOW + seconds(at_second)))


@pytest.fixture
def served(database: Database, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(fleet_heartbeats, "PART_SERVICES", 1)
    return Served(database)


@pytest.mark.parametrize(
    ("reads", "heard"),
    [
        pytest.param([0.0, 0.2], [0, 0], id="none is due yet"),
        pytest.param([0.25, 0.3, 0.5, 0.75], [1, 0, 1, 1], id="one each quarter of a second"),
        pytest.param([1.0], [4], id="all that are late"),
        pytest.param([0.25, 1.0, 1.2, 1.25], [1, 3, 0, 0], id="only those that are late"),
        pytest.param([-5.0], [4], id="the clock was set back"),
    ],
)
def test_parts_take_turns(served: Served, reads: list[float], heard: list[int]) -> None:
    served.beat(0)
    assert [served.heard(at_second) for at_second in reads] == heard


def test_from_when_on_heartbeats_are_looked_for(served: Served) -> None:
    overlap, epoch = 60, (NOW - datetime.datetime(1970, 1, 1)).total_seconds()
    assert served.reader.heard_since(NOW) is None
    assert served.reader.heard_since(NOW + seconds(0.3)) == epoch - overlap
    served.reader.heard_nothing(NOW + seconds(2))
    assert served.reader.heard_since(NOW + seconds(2)) is None
    assert served.reader.heard_since(NOW + seconds(3)) == epoch + 2 - overlap
