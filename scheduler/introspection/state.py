"""The worker that is asked, and its state: in numbers, host by host, read again."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.explain.answer import answer
from scheduler.hosts.capacity import host_states
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from scheduler.introspection.host_dump import differences, dump_host, dump_values, in_order
from scheduler.manager import SchedulerManager

#: Hosts that one question names.
MOST_HOSTS: Final = 500
#: So many of the things that a full read has put right are named.
MOST_NAMED: Final = 200


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
    """*value* has to be a list of texts."""
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
    """Who the worker is, what it knows of the fleet, what it has promised and how old that is.

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


def state_hosts(subject: Subject, hosts: Sequence[str]) -> dict[str, Any]:
    """Dumps of *hosts* by name; ``unknown``: those not there, each with a name like it or null."""
    require_texts("hosts", hosts)
    if len(hosts) > MOST_HOSTS:
        raise errors.InvalidRequest(field="hosts", reason=f"more than {MOST_HOSTS}")
    wanted = set(hosts)
    with copied(subject) as (table, reservations):
        keys = sorted((key for key in table.rows if key[0] in wanted), key=in_order)
        unknown = [host for host in hosts if host not in table.rows_of_host]
        return {
            "hosts": [dump_host(table, reservations, key) for key in keys],
            "unknown": {host: errors.nearest(host, table.rows_of_host) for host in unknown},
        }


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
    manager = subject.host_manager
    _read(manager, manager.refresh)  # what is news is nothing that was missed
    with copied(subject) as (before, picks_before):
        _read(manager, manager.refresh_everything)
        with copied(subject) as (after, picks_after):
            for reservations in (picks_before, picks_after):
                for each in list(reservations):
                    reservations.release(each)
            repaired: list[dict[str, Any]] = []
            for key in sorted(before.rows.keys() | after.rows.keys(), key=in_order):
                old, new = (
                    dump_values(table, table.rows[key]) if key in table.rows else None
                    for table in (before, after)
                )
                repaired += differences(key, old, new)
    named = repaired[:MOST_NAMED]
    return {"hosts": len(after), "repaired": len(repaired), "repairs": named}
