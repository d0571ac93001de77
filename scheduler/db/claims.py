"""Claims of schedulers, and the generation of each host (docs/decisions/0007).

A claim is *open* until it is closed; closed ones stay for a while, so that a request which arrives
twice finds its answer, and so that nobody misses a claim that came and went.
"""

import datetime
import functools
import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler.db import rows
from scheduler.db.database import Database, is_atomic
from scheduler.db.tables import claim_hosts, claims

LOG = logging.getLogger(__name__)

Key = tuple[str, str]
"""Host and node; a node without a name is the empty text here."""
Values = Mapping[str, Any]

#: Host of a refusal, and of a mark.
NO_HOST = ""
#: Everything but the answer, which only a repeated request needs.
COLUMNS = [column for column in claims.c if column.name != "answer"]
#: Names of what a claim is written with.
VALUES = [column.name for column in claims.c if column.name not in ("id", "closed_at")]


class Move(NamedTuple):
    """The id of a host, the generation that it is expected to have, and its next one."""

    id: int
    expected: int
    generation: int

    @classmethod
    def from_row(cls, row: Any) -> Self:
        """The move from the generation of a host's *row* to a new one."""
        return cls(row.id, row.generation, new_generation())

    @property
    def made(self) -> dict[str, int]:
        return {"generation": self.generation, "previous": self.expected}


def new_generation() -> int:
    return secrets.randbits(64) - 2**63


# --- hosts ----------------------------------------------------------------------------------


def known_hosts(database: Database, keys: Collection[Key]) -> dict[Key, Any]:
    """The rows of those of these hosts that have one: id, host, node and generation."""
    # Indexes of MySQL and MariaDB ignore spaces at the end: to them "h" and "h " are one host.
    end = " " if database.dialect_name == "mysql" else ""
    names = sorted({host for host, _node in keys})
    with database.read() as connection:
        found = rows.select_in(connection, sa.select(claim_hosts), claim_hosts.c.host, names)
    of_name = {(row.host.rstrip(end), row.node.rstrip(end)): row for row in found}
    pairs = ((key, of_name.get((key[0].rstrip(end), key[1].rstrip(end)))) for key in keys)
    return {key: row for key, row in pairs if row is not None}


def begin(database: Database, keys: Collection[Key]) -> dict[Key, Any]:
    """The rows of hosts, made where there is none."""
    while missing := sorted({*keys} - (found := known_hosts(database, keys)).keys()):
        for some in rows.in_batches(missing):
            values = [{"host": h, "node": n, "generation": new_generation()} for h, n in some]
            statement = claim_hosts.insert().values(values)
            try:
                database.write_retrying(functools.partial(Connection.execute, statement=statement))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Others have just begun to count the claims on these hosts")
    return found


def forget_hosts(connection: Connection) -> None:
    """Delete all hosts: no generation that anybody knows is there any more."""
    connection.execute(claim_hosts.delete())


def unlocked(connection: Connection, numbers: Collection[int]) -> set[int]:
    """Those of the hosts with these ids that nobody holds a lock on."""
    query = sa.select(claim_hosts.c.id).where(claim_hosts.c.id.in_(numbers))
    return set(connection.execute(query.with_for_update(skip_locked=True)).scalars())


# --- claims ---------------------------------------------------------------------------------


Pair = tuple[int, int]
"""Id and generation of a claim.  Ids come again where the database has gone back."""


def newest(connection: Connection) -> Pair:
    """The newest claim, open or closed; zeros without claims."""
    query = sa.select(claims.c.id, claims.c.generation).order_by(claims.c.id.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return (0, 0) if found is None else (found.id, found.generation)


def open_ids(connection: Connection, there: Collection[Pair]) -> tuple[bool, set[int]]:
    """True if all claims of *there* are, open or closed; and the ids of all open claims."""
    found, ids = _ids_where(connection, _has_any(there), "claims.closed_at IS NULL")
    return len(found) == len(there), ids


def changed_ids(
    connection: Connection,
    there: Collection[Pair],
    number: int,
    missed: Collection[int],
    since: datetime.datetime | None,
) -> tuple[bool, set[int], set[int]]:
    """The same; but instead of the open ones those above *number* or among *missed*, open or
    closed; and, if *since* is given, the ids of those closed since, or closed and of *there*.
    """
    came = f"id > {number} OR id IN ({_texts(missed)})"
    known, closed = _has_any(there), "FALSE"
    if since is not None:
        closed = f"closed_at >= '{since.replace(microsecond=0).isoformat(' ')}'"
        closed += f" OR closed_at IS NOT NULL AND {known}"
    found, ids, closed_ids = _ids_where(connection, known, came, closed)
    return len(found) == len(there), ids, closed_ids


_PART = "(SELECT {} FROM claims WHERE {})"


def _ids_where(connection: Connection, *conditions: str) -> list[set[int]]:
    """Per condition the ids of its claims, maybe thousands.

    They come as one text, as a row for each would cost more.  Every request reads, and putting the
    same statement together from expressions would take as long as its execution.
    """
    is_postgresql = connection.dialect.name == "postgresql"
    listed = "string_agg(id::text, ',')" if is_postgresql else "group_concat(id)"
    parts = ", ".join(_PART.format(listed, each) for each in conditions)
    [found] = connection.exec_driver_sql(f"SELECT {parts}")
    return [set(map(int, text.split(","))) if text else set() for text in found]


def _has_any(several: Collection[Pair]) -> str:
    """The condition for rows with these ids and generations: no two writes have one in common."""
    ids, generations = (_texts(each[place] for each in several) for place in (0, 1))
    return f"id IN ({ids}) AND generation IN ({generations})"


def _texts(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "NULL"


_ONE_OF = claims.c.id.in_(sa.bindparam("ids", expanding=True))
#: Made once: it is asked in each read of what others have claimed.
_BY_IDS = sa.select(*COLUMNS).where(_ONE_OF).order_by(claims.c.id)


def by_ids(connection: Connection, ids: Collection[int]) -> list[Any]:
    """The claims with these ids, in the order of these, without their answers."""
    found: list[Any] = []
    for some in rows.in_batches(sorted(ids)):
        found += connection.execute(_BY_IDS, {"ids": some})
    return found


def of_consumers(connection: Connection, uuids: Collection[str]) -> Sequence[Any]:
    """Claims and refusals of these consumers, open or closed, by id and with their answers."""
    query = sa.select(claims).where(claims.c.consumer_uuid.in_(uuids)).order_by(claims.c.id)
    return connection.execute(query).all()


def list_all(
    connection: Connection, *, host: str | None = None, with_closed: bool = False
) -> Sequence[Any]:
    """Claims by id: the open ones, or all; on every host or on one.  No refusals."""
    query = sa.select(*COLUMNS).where(claims.c.host != NO_HOST).order_by(claims.c.id)
    if host is not None:
        query = query.where(claims.c.host == host)
    if not with_closed:
        query = query.where(claims.c.closed_at.is_(None))
    return connection.execute(query).all()


def held_until(connection: Connection) -> datetime.datetime | None:
    """The time before which a mark lets nobody claim; None without a mark."""
    is_mark = (claims.c.host == NO_HOST) & claims.c.closed_at.is_(None)
    return connection.execute(sa.select(sa.func.max(claims.c.expires_at)).where(is_mark)).scalar()


def insert(connection: Connection, values: Sequence[Values]) -> None:
    """Insert claims; raises oslo.db's DBDuplicateEntry where a request has written one already."""
    connection.execute(claims.insert(), values)


def refusal(
    consumer_uuid: str, request_id: str, answer: str, now: datetime.datetime
) -> dict[str, Any]:
    """Values of a refusal: a closed claim without a host, for an instance that got none."""
    return {
        "generation": new_generation(),
        "consumer_uuid": consumer_uuid,
        "host": NO_HOST,
        "node": NO_HOST,
        **dict.fromkeys(("vcpus", "memory_mb", "disk_gb"), 0),
        "request_id": request_id,
        "answer": answer,
        **dict.fromkeys(("created_at", "expires_at", "closed_at"), now),
    }


def close(connection: Connection, generations: Mapping[int, int], now: datetime.datetime) -> int:
    """Close claims, *generations* by ids, as far as they are open; return how many there were."""
    closed = 0
    for some in rows.in_batches(sorted(generations)):
        is_same = claims.c.generation.in_([generations[number] for number in some])
        is_open = claims.c.id.in_(some) & is_same & claims.c.closed_at.is_(None)
        closed += connection.execute(claims.update().where(is_open).values(closed_at=now)).rowcount
    return closed


def purge(connection: Connection, before: datetime.datetime) -> None:
    """Delete the claims that were closed before that time, but not the newest one of then.

    Whoever has read since, and found nothing, knows the history by it.
    """
    query = sa.select(sa.func.max(claims.c.id)).where(claims.c.created_at < before)
    newest_then = connection.execute(query).scalar() or 0
    is_over = (claims.c.closed_at < before) & (claims.c.id < newest_then)
    connection.execute(claims.delete().where(is_over))


# --- claiming -------------------------------------------------------------------------------


class Moved(Exception):
    """A host is not at the generation that was expected."""


_READ_NAMES = ", ".join(column.name for column in COLUMNS)
#: By another index it would wait for locks on claims of others.
_MARIADB = """BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    UPDATE claim_hosts SET generation = CASE id {next} END WHERE {expected};
    IF ROW_COUNT() = {hosts} THEN
        UPDATE claims FORCE INDEX (PRIMARY) SET closed_at = COALESCE(closed_at, %s),
            consumer_uuid = IF(id IN ({aside}), CONCAT('aside-', id), consumer_uuid)
        WHERE id IN ({replaced}) AND consumer_uuid IN ({consumers});
        INSERT INTO claims ({names}) VALUES {values};
        COMMIT;
        SELECT {read} FROM claims WHERE consumer_uuid IN ({consumers}) AND generation IN ({made});
    ELSE
        ROLLBACK;
    END IF;
END"""
#: Its parts see each other's results, not their changes, so who needs an order counts.
_POSTGRESQL = """
WITH locked AS (
    SELECT claim_hosts.id, step.next FROM claim_hosts
    JOIN unnest(%s::int[], %s::bigint[], %s::bigint[]) AS step (id, expected, next)
        ON claim_hosts.id = step.id AND claim_hosts.generation = step.expected
    ORDER BY claim_hosts.id FOR UPDATE OF claim_hosts
), fit AS (
    SELECT count(*) FROM locked HAVING count(*) = %s
), moved AS (
    UPDATE claim_hosts SET generation = locked.next FROM locked, fit
    WHERE claim_hosts.id = locked.id
), replaced AS (
    UPDATE claims SET closed_at = COALESCE(closed_at, %s),
        consumer_uuid = CASE WHEN id = ANY(%s::int[]) THEN 'aside-' || id ELSE consumer_uuid END
    FROM fit
    WHERE id = ANY(%s::int[]) AND consumer_uuid = ANY(%s::text[]) RETURNING id
)
INSERT INTO claims ({names}) SELECT {names}
FROM json_populate_recordset(NULL::claims, %s::json), fit
WHERE (SELECT count(*) FROM replaced) >= 0 RETURNING {read}"""


class _Write(NamedTuple):
    """Hosts to move on, claims to insert, ids of those to close and, among them, to set aside."""

    moves: list[Move]
    values: Sequence[Values]
    replaced: list[int]
    aside: list[int]
    now: datetime.datetime

    @property
    def consumers(self) -> list[str]:
        return [each["consumer_uuid"] for each in self.values]

    @property
    def made(self) -> list[int]:
        return [each.generation for each in self.moves]


def claim(
    connection: Connection,
    moves: Iterable[Move],
    values: Sequence[Values],
    now: datetime.datetime,
    replaced: Iterable[int] = (),
    aside: Iterable[int] = (),
) -> Sequence[Any]:
    """Move hosts on and insert claims as *values* say, or raise Moved: all or nothing.

    Claims of the same consumers with the ids *replaced* are closed *now*.  Those with the ids
    *aside* lose the name of their consumer, too, as a claim of the same request is among the
    *values*.  A round trip on MariaDB and PostgreSQL where *connection* commits each statement;
    elsewhere its transaction is to be rolled back.  Returns the rows without their answers; raises
    like :func:`insert`.
    """
    write = _Write(sorted(moves), values, sorted({*replaced, *aside}), sorted(aside), now)
    if connection.dialect.name == "postgresql":
        way = _claim_on_postgresql
    else:
        way = _claim_on_mariadb if is_atomic(connection.dialect) else _claim_stepwise
    return way(connection, write)


def _claim_on_postgresql(connection: Connection, write: _Write) -> Sequence[Any]:
    found = connection.exec_driver_sql(
        _POSTGRESQL.format(names=", ".join(VALUES), read=_READ_NAMES),
        (
            *(list(each) for each in zip(*write.moves, strict=True)),
            *(len(write.moves), write.now, write.aside, write.replaced, write.consumers),
            json.dumps(write.values, default=str),
        ),
    ).all()
    if not found:
        raise Moved
    return found


def _claim_on_mariadb(connection: Connection, write: _Write) -> Sequence[Any]:
    row, consumers = _marks(VALUES), write.consumers
    text = _MARIADB.format(
        next=" ".join(f"WHEN {number} THEN {after}" for number, _expected, after in write.moves),
        expected=" OR ".join(
            f"id = {number} AND generation = {expected}" for number, expected, _after in write.moves
        ),
        hosts=len(write.moves),
        replaced=_texts(write.replaced),
        aside=_texts(write.aside),
        names=", ".join(VALUES),
        values=", ".join(f"({row})" for _each in write.values),
        read=_READ_NAMES,
        consumers=_marks(consumers),
        made=_texts(write.made),
    )
    inserted = [each.get(name) for each in write.values for name in VALUES]
    found = connection.exec_driver_sql(text, (write.now, *consumers, *inserted, *consumers))
    if not found.returns_rows:
        raise Moved
    return found.all()


def _marks(several: Sized) -> str:
    return ", ".join(["%s"] * len(several))


def _claim_stepwise(connection: Connection, write: _Write) -> Sequence[Any]:
    for number, expected, after in write.moves:
        is_there = (claim_hosts.c.id == number) & (claim_hosts.c.generation == expected)
        swap = claim_hosts.update().where(is_there).values(generation=after)
        if not connection.execute(swap).rowcount:
            raise Moved
    name, closed_at = claims.c.consumer_uuid, claims.c.closed_at
    of_consumers, is_aside = name.in_(write.consumers), claims.c.id.in_(write.aside)
    other = sa.literal("aside-").concat(sa.cast(claims.c.id, sa.Text))
    replace = claims.update().where(claims.c.id.in_(write.replaced), of_consumers)
    values = {name: sa.case((is_aside, other), else_=name)}
    connection.execute(
        replace.values({**values, closed_at: sa.func.coalesce(closed_at, write.now)})
    )
    insert(connection, write.values)
    made = sa.select(*COLUMNS).where(of_consumers & claims.c.generation.in_(write.made))
    return connection.execute(made).all()
