"""Claims of schedulers, and the generation of each host (docs/decisions/0007).

A claim is *open* until it is closed; closed ones stay for a while, so that a request which arrives
twice finds its answer, and so that nobody misses a claim that came and went.
"""

import datetime
import functools
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler.db import rows
from scheduler.db.database import Database
from scheduler.db.tables import claim_hosts, claims

LOG = logging.getLogger(__name__)

Key = tuple[str, str]
"""Host and node; a node without a name is the empty text here."""

#: Host of a refusal.
NO_HOST = ""
_RETIRED = uuid.UUID("0f3d4bd2-3a0c-4d53-9a5c-8f1c8a6d0c11")
#: Most hosts that one statement moves on.
_HOSTS_AT_ONCE = 50
#: Everything but the answer, which only a repeated request needs.
COLUMNS = [column for column in claims.c if column.name != "answer"]
_INSERT_RETURNING = claims.insert().returning(*COLUMNS)


# --- hosts ----------------------------------------------------------------------------------


def hosts(connection: Connection, names: Collection[str] | None = None) -> Sequence[Any]:
    """Id, host, node and generation of every host known here, or of those with these *names*."""
    query = sa.select(claim_hosts)
    if names is not None:
        query = query.where(claim_hosts.c.host.in_(names))
    return connection.execute(query).all()


def add(connection: Connection, keys: Iterable[Key]) -> None:
    """Begin to count for hosts; raises oslo.db's DBDuplicateEntry where that was done."""
    values = [{"host": host, "node": node, "generation": 0} for host, node in keys]
    connection.execute(claim_hosts.insert(), values)


def known_hosts(database: Database, keys: Iterable[Key]) -> dict[Key, Any]:
    """The rows of those of these hosts that are known here."""
    with database.read() as connection:
        found = (
            row
            for names in rows.in_batches(sorted({host for host, _node in keys}))
            for row in hosts(connection, names)
        )
        return {(row.host, row.node): row for row in found}


def begin(database: Database, keys: Collection[Key]) -> dict[Key, Any]:
    """Begin to count for hosts, as far as nobody does yet; returns their rows."""
    while missing := sorted({*keys} - (found := known_hosts(database, keys)).keys()):
        for some in rows.in_batches(missing):
            try:
                database.write_retrying(functools.partial(add, keys=some))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Others have begun to count the claims on these hosts just now")
    return found


def compare_and_swap(connection: Connection, expected: Mapping[int, tuple[int, int]]) -> bool:
    """Move hosts on if every one is at its expected generation; otherwise some may have moved.

    *expected* maps ids of hosts to (generation, number of claims to be made).
    """
    of_count: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number in sorted(expected):
        generation, count = expected[number]
        of_count[count].append((number, generation))
    moved = 0
    for count, pairs in sorted(of_count.items()):
        for start in range(0, len(pairs), _HOSTS_AT_ONCE):
            some = pairs[start : start + _HOSTS_AT_ONCE]
            values = {"count": count}
            for place, (number, generation) in enumerate(some):
                values |= {f"host_{place}": number, f"generation_{place}": generation}
            moved += connection.execute(_swap(len(some)), values).rowcount
    return moved == len(expected)


def unlocked(connection: Connection, numbers: Collection[int]) -> set[int]:
    """Those of the hosts with these ids that nobody holds a lock on."""
    query = sa.select(claim_hosts.c.id).where(claim_hosts.c.id.in_(numbers))
    return set(connection.execute(query.with_for_update(skip_locked=True)).scalars())


def raise_to(connection: Connection, generations: Mapping[int, int]) -> None:
    """Raise hosts, given by id, to these *generations*, unless they are beyond them."""
    for number, generation in sorted(generations.items()):
        behind = (claim_hosts.c.id == number) & (claim_hosts.c.generation < generation)
        connection.execute(claim_hosts.update().where(behind).values(generation=generation))


@functools.lru_cache(maxsize=_HOSTS_AT_ONCE)
def _swap(hosts: int) -> sa.Update:
    """Move so many hosts on, each at its expected generation, found by their ids."""
    conditions = [
        sa.and_(
            claim_hosts.c.id == sa.bindparam(f"host_{place}"),
            claim_hosts.c.generation == sa.bindparam(f"generation_{place}"),
        )
        for place in range(hosts)
    ]
    return (
        claim_hosts.update()
        .where(sa.or_(*conditions))
        .values(generation=claim_hosts.c.generation + sa.bindparam("count"))
    )


# --- claims ---------------------------------------------------------------------------------


_NEWEST_ID = sa.select(sa.func.max(claims.c.id))


def open_ids(connection: Connection) -> set[int]:
    """The ids of all open claims, of which there may be thousands."""
    [ids] = _ids_where(connection, claims.c.closed_at.is_(None))
    return ids


def newest_id(connection: Connection) -> int:
    """The highest id of any claim, open or closed; 0 without claims."""
    return int(connection.execute(_NEWEST_ID).scalar() or 0)


def changed_ids(
    connection: Connection, newest: int, missed: Collection[int], since: datetime.datetime
) -> tuple[set[int], set[int]]:
    """Ids of the claims above *newest* or among *missed*, open or closed; and of those that were
    closed *since*.
    """
    came = (claims.c.id > newest) | claims.c.id.in_(missed)
    new, closed = _ids_where(connection, came, claims.c.closed_at >= since.replace(microsecond=0))
    return new, closed


def _ids_where(connection: Connection, *conditions: sa.ColumnElement[bool]) -> list[set[int]]:
    """Per condition the ids of its claims: as one text, as a row for each would cost more."""
    text = sa.cast(claims.c.id, sa.Text)
    is_postgresql = connection.dialect.name == "postgresql"
    listed = sa.func.string_agg(text, ",") if is_postgresql else sa.func.group_concat(claims.c.id)
    [found] = connection.execute(
        sa.select(*(sa.select(listed).where(each).scalar_subquery() for each in conditions))
    )
    return [set(map(int, each.split(","))) if each else set() for each in found]


def by_ids(connection: Connection, ids: Collection[int]) -> list[Any]:
    """The claims with these ids, without their answers."""
    return rows.select_in(connection, sa.select(*COLUMNS), claims.c.id, sorted(ids))


def of_consumers(connection: Connection, uuids: Collection[str]) -> dict[str, Any]:
    """The claims, with their answers, of the consumers that have one, open or closed."""
    query = sa.select(claims).where(claims.c.consumer_uuid.in_(uuids))
    return {row.consumer_uuid: row for row in connection.execute(query)}


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


def insert(connection: Connection, values: Iterable[Mapping[str, Any]]) -> Sequence[Any]:
    """Insert claims; raises oslo.db's DBDuplicateEntry where a consumer has one already.

    Returns their rows, without the answers, where the engine returns them (MySQL does not).
    """
    several = list(values)
    if not connection.dialect.insert_executemany_returning:
        connection.execute(claims.insert(), several)
        return ()
    return connection.execute(_INSERT_RETURNING, several).all()


def refusal(
    consumer_uuid: str, request_id: str, answer: str, now: datetime.datetime
) -> dict[str, Any]:
    """Values of a refusal: a closed claim without a host, for an instance that got none."""
    nothing = dict.fromkeys(("generation", "vcpus", "memory_mb", "disk_gb"), 0)
    return {
        "consumer_uuid": consumer_uuid,
        "host": NO_HOST,
        "node": NO_HOST,
        **nothing,
        "request_id": request_id,
        "answer": answer,
        **dict.fromkeys(("created_at", "expires_at", "closed_at"), now),
    }


def retire(connection: Connection, replaced: Iterable[Any], now: datetime.datetime) -> None:
    """Make way for other claims of these consumers; the rows stay, closed, for :func:`answered`."""
    names = {row.id: retired_name(row.consumer_uuid, row.request_id) for row in replaced}
    if names:
        connection.execute(claims.delete().where(claims.c.consumer_uuid.in_(names.values())))
    for number, name in sorted(names.items()):
        values = {
            "consumer_uuid": name,
            "host": NO_HOST,
            "node": NO_HOST,
            "closed_at": sa.func.coalesce(claims.c.closed_at, now),
        }
        connection.execute(claims.update().where(claims.c.id == number).values(values))


def retired_name(consumer_uuid: str, request_id: str) -> str:
    """Consumer name of a claim that another request has replaced."""
    return str(uuid.uuid5(_RETIRED, f"{consumer_uuid} {request_id}"))


def answered(connection: Connection, uuids: Collection[str], request_id: str) -> dict[str, Any]:
    """By consumer, what was claimed for this request, though others may have replaced it."""
    names = {retired_name(each, request_id): each for each in uuids}
    found = of_consumers(connection, [*uuids, *names])
    return {
        names.get(name, name): row for name, row in found.items() if row.request_id == request_id
    }


def close(connection: Connection, ids: Collection[int], now: datetime.datetime) -> int:
    """Close the claims with these ids as far as they are open; return how many there were."""
    closed = 0
    for some in rows.in_batches(sorted(ids)):
        statement = (
            claims.update()
            .where(claims.c.id.in_(some), claims.c.closed_at.is_(None))
            .values(closed_at=now)
        )
        closed += connection.execute(statement).rowcount
    return closed


def close_of(connection: Connection, consumer_uuid: str, now: datetime.datetime) -> int:
    """Close the claim of one consumer; return how many there were open."""
    criteria = (claims.c.consumer_uuid == consumer_uuid, claims.c.closed_at.is_(None))
    return connection.execute(claims.update().where(*criteria).values(closed_at=now)).rowcount


def purge(connection: Connection, before: datetime.datetime) -> None:
    """Delete the claims that were closed before that time."""
    connection.execute(claims.delete().where(claims.c.closed_at < before))
