"""The worker that is asked, and its state: in numbers, host by host, as one hash, read again."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import heapq
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.explain.answer import answer
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.columns import CHANGED_BY_RESERVATIONS
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from scheduler.introspection.host_dump import (
    TIMES,
    differences,
    document,
    dump_host,
    dump_values,
    in_order,
)
from scheduler.manager import SchedulerManager

#: Hosts that one answer shows.
MOST_IN_A_PAGE: Final = 500
#: So many of the things that a full read has put right are named.
MOST_NAMED: Final = 200
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True)
class Subject:
    """One of *workers* workers of the daemon *host*; they are numbered from 1 on."""

    conf: cfg.ConfigOpts
    manager: SchedulerManager
    number: int
    workers: int
    pid: int = field(default_factory=os.getpid)
    started_at: float = field(default_factory=time.time)
    #: Held by an answer that needs much memory, so that there is one of them at a time.
    large: threading.RLock = field(default_factory=threading.RLock)

    @property
    def known_host_manager(self) -> HostManager:
        """Who keeps the state of the hosts; InvalidRequest if that is not known how."""
        manager = self.manager.driver.host_manager
        if not isinstance(manager, HostManager):
            reason = f"{type(manager).__name__} keeps its state in a way of its own"
            raise errors.InvalidRequest(field="[scheduler] host_manager", reason=reason)
        return manager


def worker(subject: Subject) -> dict[str, Any]:
    """Number, process and version of the worker; ``workers`` says how many it should have."""
    driver = subject.manager.driver
    since = datetime.datetime.fromtimestamp(subject.started_at, datetime.UTC)
    return {
        "host": subject.conf.host,
        "worker": subject.number,
        "workers": subject.workers,
        "pid": subject.pid,
        "version": scheduler.__version__,
        "started_at": since.isoformat(timespec="seconds"),
        "driver": type(getattr(driver, "driver", driver)).__name__,
    }


def explain(subject: Subject, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The decisions on the request id or instance uuid *name* that this worker remembers."""
    return answer(subject.manager, name, on_host)


def require_texts(field: str, value: Any) -> None:
    """*value* has to be a list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise errors.InvalidRequest(field=field, reason="not a list of texts")


@contextlib.contextmanager
def copied(subject: Subject) -> Iterator[tuple[HostTable, Reservations]]:
    """A copy of table and reservations; decisions wait while it is made.

    One thread at a time has copies.
    """
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
        table, age = manager.table, manager.state_age_seconds
        scope = Scope(table, manager.clock(), subject.conf.service_down_time)
        candidates = Candidates(scope, table.order.copy())
        counts = {
            "hosts": len(table),
            "candidates": len(candidates),
            "up": int(np.count_nonzero(candidates.service_up)),
            "disabled": int(np.count_nonzero(candidates.service_disabled)),
            "instances": len(table.host_of_instance),
            "aggregates": len(manager.aggregates),
            "open_picks": sum(1 for _pick in manager.reservations),
        }
    return {
        **worker(subject),
        **counts,
        "state_age_seconds": None if age is None else round(age, 3),
        "cells_left_out": [each.uuid for each in manager.cell_health() if each.is_left_out],
    }


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
        reason = f"not a number from 1 to {MOST_IN_A_PAGE}"
        raise errors.InvalidRequest(field="limit", reason=reason)
    if hosts is not None:
        require_texts("hosts", hosts)
    if after is not None and not _is_key(after):
        raise errors.InvalidRequest(field="after", reason="not the names of a host and a node")
    begin = ("", "") if after is None else in_order((str(after[0]), after[1]))
    wanted = None if hosts is None else set(hosts)
    with copied(subject) as (table, reservations):
        known = [key for key in table.rows if wanted is None or key[0] in wanted]
        keys = [key for key in known if after is None or in_order(key) > begin]
        shown = heapq.nsmallest(limit, keys, key=in_order)
        found = []
        for key in shown:
            found.append(dump_host(table, reservations, key))
            time.sleep(0)  # requests come first, also under eventlet
        unknown = [host for host in hosts or () if host not in table.rows_of_host]
        return {
            "hosts": found,
            "next": list(shown[-1]) if len(keys) > len(shown) else None,
            "unknown": {host: errors.nearest(host, table.rows_of_host) for host in unknown},
        }


def _is_key(after: Any) -> bool:
    is_pair = isinstance(after, list | tuple) and len(after) == 2
    return is_pair and isinstance(after[0], str) and isinstance(after[1], str | None)


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
    """Read everything again, and say what of the hosts' reports the reads of changes had missed.

    ``memory`` is what was known before, ``database`` what is known now.
    """
    manager = subject.known_host_manager
    _read(manager, manager.refresh)  # what is news is nothing that was missed
    with copied(subject) as (before, picks_before):
        began = time.perf_counter()
        _read(manager, manager.refresh_everything)
        took = time.perf_counter() - began
        with copied(subject) as (after, picks_after):
            found_hash = state_hash(after, picks_after)
            for reservations in (picks_before, picks_after):
                for each in list(reservations):
                    reservations.release(each)
            repaired: list[dict[str, Any]] = []
            for key in sorted(before.rows.keys() | after.rows.keys(), key=in_order):
                old = dump_host(before, picks_before, key) if key in before.rows else None
                new = dump_host(after, picks_after, key) if key in after.rows else None
                repaired += differences(key, old, new)
    return {
        "hosts": len(after),
        "hash": found_hash,
        "seconds": round(took, 3),
        "repaired": len(repaired),
        "repairs": repaired[:MOST_NAMED],
    }


def hash_of_state(subject: Subject) -> dict[str, Any]:
    """The hash of the worker's state."""
    with copied(subject) as (table, reservations):
        return {"hash": state_hash(table, reservations)}


def state_hash(table: HostTable, reservations: Reservations) -> str:
    """The hash of all that a decision depends on, as hexadecimal digits.

    Times are left out: heartbeats and reports that change nothing else come all the time.  Nobody
    may change *table* and *reservations* meanwhile.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for key in sorted(table.rows, key=in_order):
        row = table.rows[key]
        # What picks change is taken as what it says, and not in which form it is kept.
        read = {name: document(table.value(row, name)) for name in CHANGED_BY_RESERVATIONS}
        values = {**dump_values(table, row), **read, **dict.fromkeys(TIMES)}
        digest.update(_bytes([key, values]))
        time.sleep(0)  # requests come first, also under eventlet
    digest.update(_bytes(sorted(table.cells.items())))
    amounts = ((each.key, each.uuid or "", each.amount) for each in reservations)
    reserved = sorted((*key, uuid, a.ram_mb, a.disk_mb, a.vcpus) for key, uuid, a in amounts)
    digest.update(_bytes(reserved))
    return digest.hexdigest()


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
