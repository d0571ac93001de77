"""One worker on the page: its health, its decisions, the fleet as it sees it."""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import scheduler
from scheduler.conf.effective import masked
from scheduler.db.overview import Overview
from scheduler.engine.evaluation import NOT_ASKED, PASSES
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.answer import asked_for, explained, to_dict
from scheduler.explain.refusal import reason_text
from scheduler.hosts import capacity
from scheduler.hosts.host_manager import HostManager
from scheduler.manager import SchedulerManager
from scheduler.status_page.fleet import Fleet, number_of
from scheduler.status_page.recent import RecentDecisions

#: The newest so many decisions are listed.
DECISIONS_LISTED: Final = 200
#: The list names the first so many hosts of a decision.
_HOSTS_NAMED: Final = 3
#: Age of totals that serve the next reader, too: 50 flavors and 10,000 hosts take 30 ms.
TOTALS_SECONDS: Final = 5.0
MOST_FLAVORS: Final = 200
#: Of a host's servers, and of decisions about it, so many are listed.
MOST_OF_HOST: Final = 500


class LiveStatus:
    """May be asked by several threads; changes nothing.  *clock* gives seconds since the epoch."""

    def __init__(
        self,
        conf: Any,
        manager: SchedulerManager,
        overview: Overview,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._driver = manager.driver
        self._manager: HostManager = manager.driver.host_manager
        self._records = manager.recorder.records
        self._overview = overview
        self._clock = clock
        self._zone = conf.default_availability_zone
        self._fleet = Fleet(self._manager)
        self.note_taken_out()
        self._totals: dict[str, Any] = {}
        self._totals_at = float("-inf")
        self._recent = RecentDecisions(clock)
        manager.recorder.listeners.append(self._recent.note)
        self._id = secrets.token_hex(8)
        self._identity = {
            "id": self._id,
            "pid": os.getpid(),
            "host": conf.host,
            "driver": conf.scheduler.driver,
            "claims": conf.scheduler.claims,
            "broker": masked(getattr(conf, "transport_url", None) or "rabbit://"),
            "database": overview.databases.main.masked_url,
            "version": scheduler.__version__,
            "started_at": clock(),
        }

    def worker(self, seen: str) -> dict[str, Any]:
        """All but the fleet.

        *seen* is ``ID.NUMBER,…``: of this worker's decisions only those after the number that
        belongs to its id are listed, else all.
        """
        known = number_of(
            dict(each.partition(".")[::2] for each in seen.split(",")).get(self._id, "")
        )
        new = self._records.since(known)
        with self._manager.lock:
            open_reservations = sum(1 for _each in self._manager.reservations)
        return {
            **self._identity,
            "now": self._clock(),
            "state_age_seconds": self._manager.state_age_seconds,
            "reservations": open_reservations,
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
        """Changes since the ``version`` *since*, which may be empty; whose it is; totals."""
        age = self._manager.state_age_seconds
        changes = self._fleet.changes(since)
        known = self._overview.latest()
        around = {name: known[name] for name in ("schedulers", "recorded", "error")}
        common = {"pid": self._identity["pid"], "state_age_seconds": age, **around}
        return {**common, **self._count(known["flavors"]), **changes}

    def _count(self, flavors: list[Any]) -> dict[str, Any]:
        """``totals`` by zone, and ``flavors`` that still ``fit``."""
        is_new = bool(flavors) and not self._totals.get("flavors")
        if is_new or self._clock() - self._totals_at >= TOTALS_SECONDS:
            fleet = capacity.Capacity.from_manager(self._manager, self._zone)
            fits = fleet.fits(flavors[:MOST_FLAVORS])
            self._totals = {"totals": fleet.totals(), "flavors": fits}
            self._totals_at = self._clock()
        return self._totals

    def note_taken_out(self) -> None:
        """Notice hosts that were disabled; called every few seconds."""
        self._fleet.note_taken_out()

    def decision(self, name: str) -> dict[str, Any] | None:
        """Everything known of ``ID.NUMBER``, or of the latest decision on a request or instance.

        None if it is not kept here.
        """
        worker, _dot, number = name.partition(".")
        record = self._records.get(number_of(number)) if worker == self._id else None
        record = record or next(iter(self._records.find(name)), None)
        return None if record is None else _without_secrets(explained(record, self._driver))

    def recorded(self, name: str) -> dict[str, Any] | None:
        """The latest decision on a request or instance in the database."""
        found = self._overview.decision(name)
        return None if found is None else _without_secrets(found)

    def host(self, name: str) -> dict[str, Any] | None:
        """The servers and reservations of the host *name*, and the kept decisions about it."""
        manager, table = self._manager, self._manager.table
        flavors = {each.id: each.name for each in self._overview.latest()["flavors"]}
        with manager.lock:
            rows = list(table.rows_of_host.get(name, ()))
            instances = list(table.instances.get(name, {}).values())[:MOST_OF_HOST]
            given = {row: (table.keys[row], table.column("given_at").item(row)) for row in rows}
            held = [
                each.uuid for key, _at in given.values() for each in manager.reservations.on(key)
            ]
        if not rows:
            return None
        fates = (_fate(record, given) for record in list(self._records)[:-MOST_OF_HOST:-1])
        return {
            "host": name,
            "servers": [
                {
                    "uuid": each.uuid,
                    "project": each.project_id,
                    "flavor": flavors.get(each.instance_type_id),
                    "state": each.task_state or each.vm_state,
                    "is_reserved": each.uuid in held,
                }
                for each in instances
            ],
            "reservations": len(held),
            "decisions": [each for each in fates if each is not None],
        }


def _summary(record: DecisionRecord) -> dict[str, Any]:
    return {
        "number": record.sequence,
        "request_id": record.request_id,
        "started_at": record.started_at,
        "outcome": record.outcome,
        "num_instances": record.num_instances,
        **asked_for(record),
        "hosts": [host for host, _node in record.chosen[:_HOSTS_NAMED]],
        # Where hosts were found, they say enough in a list.
        "cause": None if record.outcome == SELECTED else _masked(to_dict(record)["cause"]),
        "elapsed_ms": round(record.elapsed_ms, 2),
    }


def _fate(record: DecisionRecord, given: Mapping[int, tuple[Any, int]]) -> dict[str, Any] | None:
    """*record* in short, with what became of a host; None if that is not known.

    *given* has the key of each of its rows, and the table's version that gave it the row.
    """
    chosen, verdicts = sum(record.chosen.count(key) for key, _at in given.values()), record.verdicts
    if chosen:
        return {**_summary(record), "fate": "chosen", "times": chosen}
    if verdicts is None:
        return None
    size, version = len(verdicts.of_row), verdicts.version
    rows = [row for row, (_key, at) in given.items() if row < size and at <= version]
    numbers = sorted(n for n in verdicts.of_row[rows].tolist() if n != NOT_ASKED)
    if not numbers or numbers[0] == PASSES:
        return {**_summary(record), "fate": "passed"} if numbers else None
    number, code = verdicts.reasons[numbers[0] - 1]
    each = verdicts.filters[number]
    why = {"filter": each.name, "reason": code, "text": reason_text(each, code)}
    return {**_summary(record), "fate": "removed", **why}


def _without_secrets(decision: dict[str, Any]) -> dict[str, Any]:
    shown = {**decision, **{name: _masked(decision[name]) for name in ("error", "cause")}}
    plain: dict[str, Any] = json.loads(json.dumps(shown), parse_constant=lambda _name: None)
    return plain


def _masked(text: str | None) -> str | None:
    """Errors of other parts may quote what they were given."""
    return None if text is None else masked(text)
