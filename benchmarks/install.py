"""Putting a fleet's rows into a database: ours, or one that Nova made."""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import sqlalchemy as sa

from benchmarks import fleet
from scheduler.db import migration, tables
from scheduler.db.database import Database
from scheduler.replay.row_fleet import moment

ROWS_AT_ONCE = 500
_TIMES = ("created_at", "updated_at", "last_seen_up")


def into_own(url: str, plan: fleet.FleetPlan, now: datetime.datetime) -> None:
    """Make our tables at *url* and put the fleet into them, as reported at *now*.

    Of the entries that say so the newest is left, as ten minutes later.
    """
    database = Database(url)
    try:
        migration.sync(database)
        with database.write() as connection:
            put(connection, connection, plan, now)
            entries = tables.changes
            newest = connection.execute(sa.select(sa.func.max(entries.c.id))).scalar()
            connection.execute(entries.delete().where(entries.c.id < newest))
    finally:
        database.dispose()


def put(
    cell: sa.Connection, api: sa.Connection, plan: fleet.FleetPlan, now: datetime.datetime
) -> None:
    """The fleet's rows: hosts and servers into the *cell*'s tables, aggregates into the *api*'s."""
    stamp = fleet.stamp_of(now)
    _insert(cell, tables.compute_nodes, fleet.compute_nodes(plan, now))
    _insert(cell, tables.services, fleet.services(plan, stamp))
    _insert(cell, tables.instances, fleet.instances(plan, stamp))
    for aggregate in fleet.aggregates(plan):
        own = {name: aggregate[name] for name in ("id", "uuid", "name")}
        number = {"aggregate_id": aggregate["id"], "created_at": stamp}
        _insert(api, tables.aggregates, [{**own, "created_at": stamp}])
        texts = aggregate["metadata"].items()
        rows = [{**number, "key": key, "value": value} for key, value in texts]
        _insert(api, tables.aggregate_metadata, rows)
        hosts = [{**number, "host": host} for host in aggregate["hosts"]]
        _insert(api, tables.aggregate_hosts, hosts)


def _insert(connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert *rows*, without the columns that the database does not have."""
    there = {each["name"] for each in sa.inspect(connection).get_columns(table.name)}
    lives = {"deleted": 0} if "deleted" in there else {}
    values = ({**lives, **_columns(row, there)} for row in rows)
    while some := list(islice(values, ROWS_AT_ONCE)):
        connection.execute(table.insert(), some)


def _columns(row: Mapping[str, Any], there: set[str]) -> dict[str, Any]:
    return {
        name: moment(value) if name in _TIMES else value
        for name, value in row.items()
        if name in there
    }


def report(
    connection: sa.Connection, nodes: Iterable[int], now: datetime.datetime, free_ram_mb: int
) -> None:
    """The compute nodes of these ids report *free_ram_mb* at *now*."""
    table = tables.compute_nodes
    values = {"updated_at": now.replace(tzinfo=None, microsecond=0), "free_ram_mb": free_ram_mb}
    for some in parts(nodes):
        connection.execute(table.update().where(table.c.id.in_(some)).values(values))


def parts(numbers: Iterable[int]) -> Iterator[list[int]]:
    """*numbers* in parts short enough for one statement."""
    left = iter(numbers)
    while some := list(islice(left, ROWS_AT_ONCE)):
        yield some
