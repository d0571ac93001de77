"""A worker's state, host by host, and having it read the state again."""

from __future__ import annotations

import contextlib
import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from scheduler import errors, spelling
from scheduler.concurrency import BREATHS
from scheduler.hosts.books import Books
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable, Key
from scheduler.introspection import forms
from scheduler.introspection.fingerprint import state_hash
from scheduler.introspection.portrait import Portrait, differences, portrait, presence
from scheduler.introspection.subject import Subject

#: Hosts that one answer shows, and for how many the lock is held without a break.
MOST_IN_A_PAGE: Final = 500
_AT_A_TIME: Final = 50
#: So many of the things that a full read has put right are named.
MOST_NAMED: Final = 200


@contextlib.contextmanager
def copied(subject: Subject) -> Iterator[tuple[HostTable, Books]]:
    """A copy of the worker's table and books, one at a time; decisions wait while it is made."""
    manager = subject.known_host_manager
    with subject.large:
        with manager.lock:
            table = manager.table.copy()
            books = manager.books.copy(table)
        yield table, books


def hash_of_state(subject: Subject) -> dict[str, Any]:
    """The hash of the worker's state."""
    with copied(subject) as (table, books):
        return {"hash": state_hash(table, books)}


def state_hosts(
    subject: Subject,
    hosts: Sequence[str] | None = None,
    after: Sequence[str | None] | None = None,
    limit: int = MOST_IN_A_PAGE,
) -> dict[str, Any]:
    """Portraits of *hosts*, or of all, in the order of their names.

    The answer holds at most *limit*, and under ``next`` what to give as *after* to get more; under
    ``unknown`` which of *hosts* there are none of, each with a name that is spelt like it or null.
    """
    if not isinstance(limit, int) or not 0 < limit <= MOST_IN_A_PAGE:
        raise errors.InvalidRequest(
            field="limit", reason=f"not a number from 1 to {MOST_IN_A_PAGE}"
        )
    if hosts is not None:
        forms.require_texts("hosts", hosts)
    if after is not None and not _is_key(after):
        raise errors.InvalidRequest(field="after", reason="not the names of a host and a node")
    manager = subject.known_host_manager
    with manager.lock:
        keys = _keys(manager.table, hosts, after, limit + 1)
        unknown = _unknown(manager.table, hosts or ())
    is_more = len(keys) > limit
    found: list[Portrait] = []
    for begin in range(0, min(limit, len(keys)), _AT_A_TIME):
        with manager.lock:
            found += [
                portrait(manager.table, manager.books, key)
                for key in keys[begin : min(begin + _AT_A_TIME, limit)]
                if key in manager.table.rows
            ]
        BREATHS.take()
    following = list(keys[limit - 1]) if is_more else None
    return {"hosts": found, "next": following, "unknown": unknown}


def _is_key(after: Any) -> bool:
    is_pair = isinstance(after, list | tuple) and len(after) == 2
    return is_pair and isinstance(after[0], str) and isinstance(after[1], str | None)


def _unknown(table: HostTable, hosts: Sequence[str]) -> dict[str, str | None]:
    return {
        host: spelling.nearest(host, table.rows_of_host)
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
        beyond = _in_order((str(host), node))
        candidates = [key for key in candidates if _in_order(key) > beyond]
    return heapq.nsmallest(most, candidates, key=_in_order)


def _in_order(key: Key) -> tuple[str, str]:
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
            books_after = manager.books.copy(after)
        repaired = _repairs(before, books_before, after, books_after)
        return {
            "hosts": len(after),
            "hash": state_hash(after, books_after),
            "seconds": round(took, 3),
            "repaired": len(repaired),
            "repairs": repaired[:MOST_NAMED],
        }


def _repairs(
    before: HostTable, books_before: Books, after: HostTable, books_after: Books
) -> list[dict[str, Any]]:
    """What the two states say differently of the hosts' own reports.

    ``memory`` is what was known before, ``database`` what is known now.
    """
    found: list[dict[str, Any]] = []
    for key in BREATHS.between(sorted(before.rows.keys() | after.rows.keys(), key=_in_order)):
        if key not in after.rows or key not in before.rows:
            found.append(presence(key, key in before.rows, key in after.rows))
            continue
        old = portrait(before, books_before, key)
        new = portrait(after, books_after, key)
        if old != new:
            for each in (old, new):
                each["values"] = {**each["values"], **each["reported"]}
            found += differences({**old, "reported": {}}, new)
    return found
