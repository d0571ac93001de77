"""Host aggregates (page database, section 4); every change moves ``aggregates.updated_at``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.database import Database
from scheduler.db.fleet_rows import Compiled, Dialect
from scheduler.db.rows import readable
from scheduler.db.sessions import ReadSession
from scheduler.db.tables import aggregate_hosts, aggregate_metadata, aggregates
from scheduler.objects.fields import LARGEST_SIZE

#: Modulus of the factors by which rows of one content count differently.
_SPREAD = 1021
_TABLES = (aggregates, aggregate_metadata, aggregate_hosts)


def create(
    connection: Connection,
    name: str,
    metadata: Mapping[str, str] | None = None,
    hosts: Iterable[str] = (),
) -> objects.Aggregate:
    """Insert an aggregate and return it; raises AlreadyExists for a name that is taken."""
    with rows.unique("aggregate", name):
        aggregate_id = rows.insert(connection, aggregates, name=name)
    of_aggregate = {"aggregate_id": aggregate_id}
    texts = [{**of_aggregate, "key": key, "value": text} for key, text in (metadata or {}).items()]
    rows.insert_many(connection, aggregate_metadata, texts)
    members = [{**of_aggregate, "host": host} for host in dict.fromkeys(hosts)]
    rows.insert_many(connection, aggregate_hosts, members)
    return get(connection, aggregate_id)


def get(connection: Connection, name_or_id: str | int) -> objects.Aggregate:
    """The aggregate of that name or else, for digits, that id; raises AggregateNotFound."""
    found: list[objects.Aggregate] = []
    if isinstance(name_or_id, str):
        found = list_all(connection, aggregates.c.name == name_or_id)
    if not found and str(name_or_id).isdecimal() and float(name_or_id) <= LARGEST_SIZE:
        found = list_all(connection, aggregates.c.id == int(name_or_id))
    if not found:
        raise errors.AggregateNotFound(aggregate_id=name_or_id)
    return found[0]


def delete(connection: Connection, aggregate_id: int) -> None:
    """Delete the aggregate with its hosts and metadata; raises AggregateNotFound."""
    for table in (aggregate_hosts, aggregate_metadata):
        connection.execute(table.delete().where(table.c.aggregate_id == aggregate_id))
    deleted = connection.execute(aggregates.delete().where(aggregates.c.id == aggregate_id))
    if not deleted.rowcount:
        raise errors.AggregateNotFound(aggregate_id=aggregate_id)


def rename(connection: Connection, aggregate_id: int, name: str) -> None:
    """Give the aggregate another name; raises AggregateNotFound, AlreadyExists."""
    with rows.unique("aggregate", name):
        _touch(connection, aggregate_id, name=name)


def add_host(connection: Connection, aggregate_id: int, host: str) -> None:
    """Put *host* in; raises AggregateNotFound, and AlreadyExists when it is in."""
    _touch(connection, aggregate_id)
    with rows.unique("host", host):
        rows.insert(connection, aggregate_hosts, aggregate_id=aggregate_id, host=host)


def remove_host(connection: Connection, aggregate_id: int, host: str) -> None:
    """Take *host* out; raises AggregateNotFound, AggregateHostNotFound."""
    _touch(connection, aggregate_id)
    table = aggregate_hosts
    criteria = (table.c.aggregate_id == aggregate_id, table.c.host == host)
    if not connection.execute(table.delete().where(*criteria)).rowcount:
        raise errors.AggregateHostNotFound(aggregate_id=aggregate_id, host=host)


def set_metadata(
    connection: Connection, aggregate_id: int, metadata: Mapping[str, str | None]
) -> None:
    """Set the texts in *metadata*, remove those given as None; raises AggregateNotFound."""
    _touch(connection, aggregate_id)
    table = aggregate_metadata
    for key, value in metadata.items():
        criteria = (table.c.aggregate_id == aggregate_id, table.c.key == key)
        if value is None:
            connection.execute(table.delete().where(*criteria))
        elif not rows.update(connection, table, *criteria, value=value):
            rows.insert(connection, table, aggregate_id=aggregate_id, key=key, value=value)


def _touch(connection: Connection, aggregate_id: int, **values: str) -> None:
    """Move ``updated_at``, and lock the row against other changes until the end."""
    if not rows.update(connection, aggregates, aggregates.c.id == aggregate_id, **values):
        raise errors.AggregateNotFound(aggregate_id=aggregate_id)


def list_all(connection: Connection, *criteria: ColumnElement[bool]) -> list[objects.Aggregate]:
    """Those that meet all *criteria*, in the order of the ids."""
    found = rows.read(connection, aggregates, *criteria)
    ids, tables = [row["id"] for row in found], (aggregate_hosts, aggregate_metadata)
    members, texts = rows.children(connection, "aggregate_id", ids, *tables)
    return [
        rows.to_object(
            objects.Aggregate,
            row,
            # Nova's table has room for rows without a host.
            hosts=[readable(each.host) for each in members[row["id"]] if each.host is not None],
            metadata={readable(each.key): readable(each.value) for each in texts[row["id"]]},
        )
        for row in found
    ]


class AggregateReader:
    """The aggregates of one *database* without triggers, read again when they have changed.

    Each read finds hosts that came, and all other changes; hosts that went are found beside the
    reads.  These take a count of all members: 1.1 ms for 12,500 on MariaDB, all else 0.2 ms.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._session, self._beside = ReadSession(database), ReadSession(database)
        dialect = Dialect(database.dialect_name)
        contents = (each for table in _TABLES for each in _contents(dialect, table))
        self._query = Compiled(database, sa.select(dialect.joined(*contents)))
        self._count = Compiled(database, sa.select(sa.func.count(aggregate_hosts.c.id)))
        self._seen: str | None = None
        self._members = 0
        self._found: Sequence[objects.Aggregate] = ()

    def read(self, *, full: bool = False) -> Sequence[objects.Aggregate]:
        """All aggregates: the same list if nothing has changed since then, unless *full*."""
        with self.database.naming_itself():
            self._session.run(lambda connection: self._read(connection, full=full))
        return self._found

    def read_beside(self, _now: object) -> tuple[()]:
        """Have the next read find hosts that went; in another thread than that of the reads."""
        if self._beside.run(self._count_members) != self._members:
            self._seen = None
        return ()

    def _read(self, connection: Connection, *, full: bool) -> None:
        contents: str = self._query.execute(connection).scalar_one()
        if full or contents != self._seen:
            self._members = self._count_members(connection)
            self._found, self._seen = list_all(connection), contents

    def _count_members(self, connection: Connection) -> Any:
        return self._count.execute(connection).scalar_one()


def _contents(dialect: Dialect, table: sa.Table) -> list[sa.ScalarSelect[Any]]:
    """Subqueries of values that differ after any change of *table*: number and sum of its rows.

    Members of aggregates are inserted and deleted, and ids of servers grow: the highest will do.
    """
    if table is aggregate_hosts and dialect.name != "sqlite":
        found: list[Any] = [sa.func.coalesce(sa.func.max(table.c.id), 0)]
    else:
        version = sa.cast(dialect.version(table, table.c), sa.BigInteger)
        total = sa.func.sum(version * (sa.cast(table.c.id, sa.BigInteger) % _SPREAD + 1))
        found = [sa.func.count(table.c.id), sa.func.coalesce(total, 0)]
    return [sa.select(each).scalar_subquery() for each in found]
