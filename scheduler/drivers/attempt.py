"""One request to the filter driver, to be decided once or, where hosts were lost, again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import answers, objects
from scheduler.claims.ledger import Decided
from scheduler.drivers.pipeline import Decision, Policy
from scheduler.drivers.selections import selections_of
from scheduler.explain.record import DecisionRecord
from scheduler.hosts.table import HostTable, Key
from scheduler.standing import StandingResults

CHECK_HINT, REBUILD = "_nova_check_type", "rebuild"
_FINGERPRINT_LENGTH = 32


@dataclass(frozen=True)
class Request:
    """The arguments of one ``select_destinations``; *spec* is copied for every decision."""

    context: Any
    spec: objects.RequestSpec
    instance_uuids: tuple[str, ...]
    count: int
    alternates: int
    zone_if_none: str
    config_options: dict[str, Any]


class DriverAttempt:
    """The request as whoever books it sees it (``claims.booking.Attempt``)."""

    def __init__(
        self,
        request: Request,
        host_manager: Any,
        policy: Policy,
        record: DecisionRecord,
        watcher: Any,
        refresh: Callable[[], None],
        results: StandingResults | None = None,
    ) -> None:
        self.refresh = refresh
        self.record = record
        self._request = request
        self._host_manager = host_manager
        self._policy = policy
        self._watcher = watcher
        self._results = results
        self._request_id: str | None = None

    @property
    def instance_uuids(self) -> Sequence[str]:
        """The instances of the request, if it names all of them."""
        named = self.record.instance_uuids
        return named if len(named) == self._request.count else ()

    @property
    def request_id(self) -> str | None:
        """The caller's request id and a fingerprint of the arguments: retries have the same id."""
        given = getattr(self._request.context, "request_id", None)
        if given and self._request_id is None:
            arguments = (self._request.spec, self._request.instance_uuids)
            self._request_id = f"{given}/{answers.fingerprint_of(arguments)[:_FINGERPRINT_LENGTH]}"
        return self._request_id

    def refresh_all(self) -> None:
        """Read the state from the database, whatever the driver thinks of its own."""
        self._host_manager.refresh()

    @property
    def needs_claims(self) -> bool:
        """Whether the hosts are to be booked: not if an instance is only rebuilt where it is."""
        hints = self._request.spec.scheduler_hints or {}
        return list(hints.get(CHECK_HINT) or ()) != [REBUILD]

    def decide(self, only: Sequence[Key] | None = None) -> Decided:
        """Decide on the state as it is now, on all hosts or *only* some; raises NoValidHost."""
        with self._host_manager.lock:
            return self._decide(only)

    def _decide(self, only: Sequence[Key] | None) -> Decided:
        request, manager = self._request, self._host_manager
        record = self._record(is_first=only is None)
        record.state_age_seconds = manager.state_age_seconds
        record.cells_left_out = tuple(
            each.uuid for each in manager.cell_health() if each.is_left_out
        )
        spec = request.spec.copy()
        spec.config_options = request.config_options
        decision = Decision(
            manager.books,
            self._policy,
            random.Random(record.seed),  # choice among equals, not a secret
            manager.clock(),
            record,
            self._watcher if only is None else None,
            None if only is None else _rows(manager.table, only),
            self._results,
        )
        uuids, count = request.instance_uuids, request.count
        placement = decision.place(spec, uuids, count, request.alternates)
        self.record.chosen = [(state.host, state.nodename) for state in placement.hosts]
        return Decided(selections_of(placement, request.zone_if_none), tuple(decision.picks))

    def _record(self, *, is_first: bool) -> DecisionRecord:
        """The request's record; what is decided again on a few hosts explains nothing."""
        kept = self.record
        if is_first:
            return kept
        return DecisionRecord(kept.request_id, kept.instance_uuids, kept.num_instances, kept.seed)


def _rows(table: HostTable, keys: Sequence[Key]) -> np.ndarray:
    wanted = {table.rows[key] for key in keys if key in table.rows}
    return table.order[np.isin(table.order, list(wanted))]
