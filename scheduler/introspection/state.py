"""A worker's state: in numbers, host by host, as one hash, and read again."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import heapq
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from scheduler import errors
from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable, Key
from scheduler.introspection.host_dump import HostDump, differences, dump_host, presence
from scheduler.introspection.worker import Subject, require_texts, worker

#: Hosts that one answer shows, and for how many the lock is held without a break.
MOST_IN_A_PAGE: Final = 500
_AT_A_TIME: Final = 50
#: So many of the things that a full read has put right are named.
MOST_NAMED: Final = 200

#: Times, which say nothing of what is decided.
_LEFT_OUT: Final = frozenset({"service_last_seen", "updated_at"})
_DIGEST_BYTES: Final = 16


@contextlib.contextmanager
def copied(subject: Subject) -> Iterator[tuple[HostTable, Reservations]]:
    """A copy of table and reservations, one at a time; decisions wait while it is made."""
    manager = subject.known_host_manager
    with subject.large:
        with manager.lock:
            table = manager.table.copy()
            reservations = manager.reservations.copy(table)
        yield table, reservations


def state_summary(subject: Subject) -> dict[str, Any]:
    """Who the worker is, what it knows of the fleet, what it has promised and how old that is.

    Hosts are compute nodes.  ``candidates`` are those with a service record; ``up`` and
    ``disabled`` are of them.
    """
    manager = subject.known_host_manager
    with manager.lock:
        counts = _counts(manager, subject.conf.service_down_time)
    age = manager.state_age_seconds
    left_out = [each.uuid for each in manager.cell_health() if each.is_left_out]
    return {
        **worker(subject),
        **counts,
        "state_age_seconds": None if age is None else round(age, 3),
        "cells_left_out": left_out,
    }


def _counts(manager: Any, service_down_time_seconds: float) -> dict[str, int]:
    table = manager.table
    candidates = Candidates(
        Scope(table, manager.clock(), service_down_time_seconds), table.order.copy()
    )
    return {
        "hosts": len(table),
        "candidates": len(candidates),
        "up": int(np.count_nonzero(candidates.service_up)),
        "disabled": int(np.count_nonzero(candidates.service_disabled)),
        "instances": len(table.host_of_instance),
        "aggregates": len(manager.aggregates),
        "open_picks": sum(1 for _pick in manager.reservations),
    }


def hash_of_state(subject: Subject) -> dict[str, Any]:
    """The hash of the worker's state."""
    with copied(subject) as (table, reservations):
        return {"hash": state_hash(table, reservations)}


def state_hosts(
    subject: Subject,
    hosts: Sequence[str] | None = None,
    after: Sequence[str | None] | None = None,
    limit: int = MOST_IN_A_PAGE,
) -> dict[str, Any]:
    """Host dumps of *hosts*, or of all, in the order of their names.

    The answer holds at most *limit*, and under ``next`` what to give as *after* to get more; under
    ``unknown`` which of *hosts* there are none of, each with a name that is spelt like it or null.
    """
    if not isinstance(limit, int) or not 0 < limit <= MOST_IN_A_PAGE:
        raise errors.InvalidRequest(
            field="limit", reason=f"not a number from 1 to {MOST_IN_A_PAGE}"
        )
    if hosts is not None:
        require_texts("hosts", hosts)
    if after is not None and not _is_key(after):
        raise errors.InvalidRequest(field="after", reason="not the names of a host and a node")
    manager = subject.known_host_manager
    with manager.lock:
        keys = _keys(manager.table, hosts, after, limit + 1)
        unknown = _unknown(manager.table, hosts or ())
    is_more = len(keys) > limit
    found: list[HostDump] = []
    for begin in range(0, min(limit, len(keys)), _AT_A_TIME):
        with manager.lock:
            found += [
                dump_host(manager.table, manager.reservations, key)
                for key in keys[begin : min(begin + _AT_A_TIME, limit)]
                if key in manager.table.rows
            ]
        time.sleep(0)  # requests come first, also under eventlet
    following = list(keys[limit - 1]) if is_more else None
    return {"hosts": found, "next": following, "unknown": unknown}


def _is_key(after: Any) -> bool:
    is_pair = isinstance(after, list | tuple) and len(after) == 2
    return is_pair and isinstance(after[0], str) and isinstance(after[1], str | None)


def _unknown(table: HostTable, hosts: Sequence[str]) -> dict[str, str | None]:
    return {
        host: errors.nearest(host, table.rows_of_host)
        for host in hosts
        if host not in table.rows_of_host
    }


def _keys(
    table: HostTable, hosts: Sequence[str] | None, after: Sequence[str | None] | None, most: int
) -> list[Key]:
    if hosts is not None:
        wanted = set(hosts)
        candidates = [key for key in table.rows if key[0] in wanted]
    else:
        candidates = list(table.rows)
    if after is not None:
        host, node = after
        beyond = in_order((str(host), node))
        candidates = [key for key in candidates if in_order(key) > beyond]
    return heapq.nsmallest(most, candidates, key=in_order)


def in_order(key: Key) -> tuple[str, str]:
    return key[0], key[1] or ""


def state_update(subject: Subject) -> dict[str, Any]:
    """Read what changed, as the next decision would."""
    manager = subject.known_host_manager
    _read(manager, manager.refresh)
    return {"state_age_seconds": manager.state_age_seconds}


def _read(manager: HostManager, how: Callable[[], None]) -> None:
    """Read; StateUnavailable also where decisions still go on with the last state."""
    began = manager.clock()
    how()
    if manager.read_at is None or manager.read_at < began:
        raise errors.StateUnavailable(reason="the database does not answer")


def state_refresh(subject: Subject) -> dict[str, Any]:
    """Read everything again, and say what of it the reads of changes had missed."""
    manager = subject.known_host_manager
    _read(manager, manager.refresh)  # what is news is nothing that was missed
    with copied(subject) as (before, books_before):
        began = time.perf_counter()
        _read(manager, manager.refresh_everything)
        took = time.perf_counter() - began
        with manager.lock:
            after = manager.table.copy()
            books_after = manager.reservations.copy(after)
        repaired = _repairs(before, books_before, after, books_after)
        return {
            "hosts": len(after),
            "hash": state_hash(after, books_after),
            "seconds": round(took, 3),
            "repaired": len(repaired),
            "repairs": repaired[:MOST_NAMED],
        }


def _repairs(
    before: HostTable, books_before: Reservations, after: HostTable, books_after: Reservations
) -> list[dict[str, Any]]:
    """Differences between the two states in the hosts' own reports.

    ``memory`` is what was known before, ``database`` what is known now.
    """
    found: list[dict[str, Any]] = []
    for key in sorted(before.rows.keys() | after.rows.keys(), key=in_order):
        if key not in after.rows or key not in before.rows:
            found.append(presence(key, key in before.rows, key in after.rows))
            continue
        old = dump_host(before, books_before, key)
        new = dump_host(after, books_after, key)
        if old != new:
            for each in (old, new):
                each["values"] = {**each["values"], **each["reported"]}
            found += differences({**old, "reported": {}}, new)
    return found


# --- the hash ----------------------------------------------------------------------------


def state_hash(table: HostTable, reservations: Reservations) -> str:
    """The hash of all that a decision depends on, as hexadecimal digits.

    Times are left out: heartbeats and reports that change nothing else come all the time.  Nobody
    may change *table* and *reservations* meanwhile.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in _parts(table, reservations):
        digest.update(part)
        time.sleep(0)  # requests come first, also under eventlet
    return digest.hexdigest()


def _parts(table: HostTable, reservations: Reservations) -> Iterator[bytes]:
    keys = sorted(table.rows, key=lambda key: (key[0], key[1] or ""))
    rows = np.array([table.rows[key] for key in keys], dtype=np.int64)
    yield _bytes(keys)
    for name in columns.COLUMN_TYPES:
        if name not in _LEFT_OUT:
            yield table.column(name)[rows].tobytes()
    for name in columns.DOCUMENT_PARSERS:
        yield from _of_documents(table, name, rows)
    for name in columns.OBJECT_COLUMNS:
        yield _bytes([table.text(row, name) for row in rows.tolist()])
    yield _bytes(sorted(table.cells.items()))
    yield _bytes(sorted(table.host_of_instance.items()))
    yield _bytes(sorted(map(_amounts, reservations)))


def _of_documents(table: HostTable, name: str, rows: np.ndarray) -> Iterable[bytes]:
    """Per row the digest of its document, which is worked out once per distinct document."""
    numbers, positions = np.unique(table.document_numbers(name)[rows], return_inverse=True)
    pool = table.pools[name]
    of_number = [
        hashlib.blake2b(_document(pool, name, number), digest_size=_DIGEST_BYTES).digest()
        for number in numbers.tolist()
    ]
    return [of_number[position] for position in positions.tolist()]


def _document(pool: Any, name: str, number: int) -> bytes:
    """A document that picks change is taken as what it says, and not in which form it is kept."""
    is_changed = name in columns.CHANGED_BY_RESERVATIONS
    return _bytes(pool.parsed(number) if is_changed else pool.content(number))


def _amounts(pick: Reservation) -> tuple[Any, ...]:
    amount = pick.amount
    return (*pick.key, pick.uuid or "", amount.ram_mb, amount.disk_mb, amount.vcpus)


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """JSON form of the values of cells and devices."""
    if isinstance(value, frozenset):
        return sorted(value)
    names = _FIELDS.get(type(value))
    if names is None:
        fields = dataclasses.fields(value)
        names = _FIELDS[type(value)] = tuple(each.name for each in fields if each.compare)
    return [getattr(value, name) for name in names]


_FIELDS: dict[type, tuple[str, ...]] = {}
