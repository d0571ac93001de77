"""One worker on the page: its health, its decisions, the fleet as it sees it."""

import os
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

import scheduler
from scheduler.conf.effective import masked
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.answer import explained, to_dict
from scheduler.hosts.host_manager import HostManager
from scheduler.manager import SchedulerManager
from scheduler.status_page.fleet import Fleet
from scheduler.status_page.recent import RecentDecisions

#: The newest so many decisions are listed.
DECISIONS_LISTED: Final = 200
#: The list names the first so many hosts of a decision.
_HOSTS_NAMED: Final = 3
_LONGEST_NUMBER: Final = 15


class LiveStatus:
    """May be asked by several threads; changes nothing.  *clock* gives seconds since the epoch."""

    def __init__(
        self, conf: Any, manager: SchedulerManager, clock: Callable[[], float] = time.time
    ) -> None:
        self._driver = manager.driver
        self._manager = _shown(manager.driver.host_manager, conf)
        self._records = manager.recorder.records
        self._clock = clock
        self._fleet = Fleet(self._manager)
        self._recent = RecentDecisions(clock)
        manager.recorder.listeners.append(self._recent.note)
        self._id = secrets.token_hex(8)
        self._identity = {
            "id": self._id,
            "pid": os.getpid(),
            "host": conf.host,
            "driver": conf.scheduler.driver,
            "version": scheduler.__version__,
            "started_at": clock(),
        }

    def worker(self, seen: str) -> dict[str, Any]:
        """All but the fleet.

        *seen* is ``ID.NUMBER,…``: of this worker's decisions only those after the number that
        belongs to its id are listed, else all.
        """
        known = _number(
            dict(each.partition(".")[::2] for each in seen.split(",")).get(self._id, "")
        )
        new = self._records.since(known)
        return {
            **self._identity,
            "now": self._clock(),
            "state_age_seconds": self._manager.state_age_seconds,
            "cells": [
                {
                    "uuid": each.uuid,
                    "name": each.name,
                    "is_left_out": each.is_left_out,
                    "error": _masked(each.error),
                }
                for each in self._manager.cell_health()
            ],
            **self._recent.counts(),
            "decisions": {
                "last": new[-1].sequence if new else known,
                "new": [_summary(record) for record in new[: -DECISIONS_LISTED - 1 : -1]],
            },
        }

    def fleet(self, since: str) -> dict[str, Any]:
        """Changes since the ``version`` *since*, which may be empty; whose it is."""
        age = self._manager.state_age_seconds
        changes = self._fleet.changes(since)
        return {"pid": self._identity["pid"], "state_age_seconds": age, **changes}

    def decision(self, name: str) -> dict[str, Any] | None:
        """Everything that is known of the decision ``ID.NUMBER``; None if it is not kept here."""
        worker, _dot, number = name.partition(".")
        record = self._records.get(_number(number)) if worker == self._id else None
        if record is None:
            return None
        found = explained(record, self._driver)
        return {**found, **{name: _masked(found[name]) for name in ("error", "cause")}}


class _NoHosts:
    """Stands for the host manager of an operator's own that keeps no table."""

    def read(self, *_given: Any, **_wanted: Any) -> list[Any]:
        return []

    services = cell_health = read


def _shown(host_manager: Any, conf: Any) -> HostManager:
    nothing: Any = _NoHosts()
    return host_manager if hasattr(host_manager, "table") else HostManager(conf, nothing)


def _summary(record: DecisionRecord) -> dict[str, Any]:
    return {
        "number": record.sequence,
        "request_id": record.request_id,
        "started_at": record.started_at,
        "outcome": record.outcome,
        "num_instances": record.num_instances,
        "hosts": [host for host, _node in record.chosen[:_HOSTS_NAMED]],
        # Where hosts were found, they say enough in a list.
        "cause": None if record.outcome == SELECTED else _masked(to_dict(record)["cause"]),
        "elapsed_ms": round(record.elapsed_ms, 2),
    }


def _masked(text: str | None) -> str | None:
    """Errors of other parts may quote what they were given."""
    return None if text is None else masked(text)


def _number(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
    return int(text) if is_number else 0
