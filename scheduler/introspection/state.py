"""The worker that is asked, and its state: in numbers, and read again."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.explain.answer import answer
from scheduler.hosts import columns
from scheduler.hosts.capacity import host_states
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable, Key
from scheduler.manager import SchedulerManager

#: All but the names of a host, and when it was heard from, is compared.
_COLUMNS: Final = tuple(
    name
    for name in (*columns.COLUMN_TYPES, *columns.TEXT_COLUMNS)
    if name not in ("host", "nodename", "updated_at", "service_last_seen")
)
#: So many of the things that a full read has put right are named.
MOST_NAMED: Final = 200
#: Age of a report that a read may have been too early for.
NEWS_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Subject:
    """One of *workers* workers of the daemon *host*; they are numbered from 1 on."""

    conf: cfg.ConfigOpts
    manager: SchedulerManager
    number: int
    workers: int
    pid: int = field(default_factory=os.getpid)
    #: Held by an answer that needs much memory, so that there is one of them at a time.
    large: threading.RLock = field(default_factory=threading.RLock)

    @property
    def host_manager(self) -> HostManager:
        manager: HostManager = self.manager.driver.host_manager
        return manager


def worker(subject: Subject) -> dict[str, Any]:
    """Number, process and version of the worker; ``workers`` says how many it should have."""
    return {
        "host": subject.conf.host,
        "worker": subject.number,
        "workers": subject.workers,
        "pid": subject.pid,
        "version": scheduler.__version__,
    }


def explain(subject: Subject, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The decisions on the request id or instance uuid *name* that this worker remembers."""
    return answer(subject.manager, name, on_host)


def shadow_report(subject: Subject) -> dict[str, Any]:
    """Requests by how this worker, a shadow, agrees with what became of them."""
    report = getattr(subject.manager.driver, "shadow_report", None)
    if report is None:
        raise errors.InvalidRequest(field="--shadow", reason="this worker is not a shadow")
    return dict(report())


def require_texts(field: str, value: Any) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise errors.InvalidRequest(field=field, reason="not a list of texts")


@contextlib.contextmanager
def copied(subject: Subject) -> Iterator[tuple[HostTable, Reservations]]:
    """A copy of table and reservations, for one thread at a time; decisions wait meanwhile."""
    manager = subject.host_manager
    with subject.large:
        with manager.lock:
            table = manager.table.copy()
            reservations = manager.reservations.copy(table)
        yield table, reservations


def state_summary(subject: Subject) -> dict[str, Any]:
    """Who the worker is, what it knows of the fleet, what it has reserved and how old that is.

    Hosts are compute nodes; one that is disabled does not count as ``up``.
    """
    manager = subject.host_manager
    with manager.lock:
        table, age = manager.table, manager.state_age_seconds
        states = host_states(table, manager.clock(), subject.conf.service_down_time)
        counts = {
            "hosts": len(table),
            "up": states["up"],
            "disabled": states["disabled"],
            "instances": len(table.host_of_instance),
            "open_picks": sum(1 for _pick in manager.reservations),
        }
    return {
        **worker(subject),
        **counts,
        "state_age_seconds": None if age is None else round(age, 3),
    }


def _read(manager: HostManager, how: Callable[[], None]) -> None:
    """Read; StateUnavailable also where decisions still go on with the last state."""
    began = manager.clock()
    how()
    if manager.read_at is None or manager.read_at < began:
        raise errors.StateUnavailable(reason="the database does not answer")


def state_refresh(subject: Subject) -> dict[str, Any]:
    """Read everything again, and say what of the hosts' reports the reads of changes had missed.

    ``memory`` is what was known before, ``database`` what is known now.  What is reported
    meanwhile is nothing that was missed.
    """
    manager = subject.host_manager
    began = manager.clock()
    _read(manager, manager.refresh)
    with copied(subject) as (before, held_before):
        _read(manager, manager.refresh_everything)
        with copied(subject) as (after, held_after):
            for reservations in (held_before, held_after):
                reservations.release_all(list(reservations))
            reported = after.column("updated_at")
            news = {key for key, row in after.rows.items() if reported[row] > began - NEWS_SECONDS}
            keys = sorted((before.rows.keys() | after.rows.keys()) - news)
            repaired = [each for key in keys for each in _differences(key, before, after)]
    return {"hosts": len(after), "repaired": len(repaired), "repairs": repaired[:MOST_NAMED]}


def host_values(table: HostTable, row: int) -> dict[str, Any]:
    """Values of a row by column; documents as their hosts wrote them."""
    host = table.value(row, "host")
    return {
        **{name: table.value(row, name) for name in _COLUMNS},
        **{name: table.content(row, name) for name in columns.DOCUMENT_PARSERS},
        columns.INSTANCES: sorted(table.instances.get(host, ())),
    }


def _differences(key: Key, before: HostTable, after: HostTable) -> Iterator[dict[str, Any]]:
    """Differences of a host's values in two tables, one of which may lack it."""
    was, now = (
        host_values(table, table.rows[key]) if key in table.rows else None
        for table in (before, after)
    )
    if was is None or now is None:
        was, now = ({"(host)": "present" if each else "absent"} for each in (was, now))
    for name, ours in was.items():
        theirs = now[name]
        if ours == theirs:
            continue
        if name == columns.INSTANCES:
            ours, theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
        place = {"host": key[0], "node": key[1], "column": name}
        yield {**place, "memory": ours, "database": theirs}
