"""One request to the filter driver, to be decided once or, where hosts were lost, again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import answers, arrival, errors, objects
from scheduler.claims.ledger import Decided, Outcome, Selections
from scheduler.drivers.pipeline import Decision
from scheduler.drivers.selections import selection_of, selections_of
from scheduler.drivers.settings import Settings
from scheduler.explain.record import CLAIM, REFRESH, DecisionRecord
from scheduler.hosts.candidates import Scope
from scheduler.hosts.table import HostTable, Key

CHECK_HINT, REBUILD = "_nova_check_type", "rebuild"
_FINGERPRINT_LENGTH = 32
_RECONFIGURED = "The configuration has changed since the hosts were chosen."


@dataclass(frozen=True)
class Request:
    """The arguments of one ``select_destinations``; *spec* is copied for every decision."""

    context: Any
    spec: objects.RequestSpec
    instance_uuids: tuple[str, ...]
    count: int
    with_alternates: bool


class DriverAttempt:
    """The request as whoever books it sees it (``claims.booking.Attempt``)."""

    def __init__(
        self,
        request: Request,
        host_manager: Any,
        settings: Callable[[], Settings],
        record: DecisionRecord,
        watcher: Any,
        refresh: Callable[[], None],
    ) -> None:
        """*settings* gives the driver's of the moment; it is asked under the decision lock."""
        self.record = record
        self._refresh = refresh
        #: Time spent on what is not booking.
        self.deciding_seconds = 0.0
        self._request = request
        self._host_manager = host_manager
        self._current_settings = settings
        self._settings: Settings | None = None
        self._watcher = watcher
        self._request_id: str | None = None

    @property
    def context(self) -> Any:
        """The context of the request."""
        return self._request.context

    @property
    def spec(self) -> objects.RequestSpec:
        """The request as it came; not to be changed."""
        return self._request.spec

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
            asked = self._request
            arguments = (asked.spec, asked.instance_uuids, asked.with_alternates)
            self._request_id = f"{given}/{answers.fingerprint_of(arguments)[:_FINGERPRINT_LENGTH]}"
        return self._request_id

    def refresh(self) -> None:
        """Bring the state up to date as the driver does."""
        self._timed(self._refresh, REFRESH)

    def refresh_all(self) -> None:
        """Read the state from the database, whatever the driver thinks of its own."""
        self._timed(self._host_manager.refresh, REFRESH)

    def note_claim(self, outcome: str) -> None:
        """What became of claiming the hosts of the last decision."""
        self.record.claim = outcome
        if outcome == Outcome.LOST.value:
            self.record.races_lost += 1

    def answer(self, booking: Any) -> Selections:
        """The answer that *booking* gives to this request."""
        began = time.perf_counter()
        try:
            selections: Selections = booking.answer(self)
            return selections
        finally:
            if self.record.claim is not None:
                spent = time.perf_counter() - began - self.deciding_seconds
                self.record.stages_ms[CLAIM] = spent * 1000

    def _timed(self, work: Callable[[], Any], stage: str) -> None:
        began = time.perf_counter()
        try:
            work()
        finally:
            self.deciding_seconds += self.record.add_stage(stage, began) - began

    @property
    def needs_claims(self) -> bool:
        """Whether the hosts are to be booked: not if an instance is only rebuilt where it is."""
        hints = self._request.spec.scheduler_hints or {}
        return list(hints.get(CHECK_HINT) or ()) != [REBUILD]

    @property
    def is_redelivered(self) -> bool:
        """Whether another worker may have begun with it, and still be at it."""
        return arrival.is_redelivered()

    def decide(
        self, only: Sequence[Key] | None = None, offered: Mapping[str, int | None] | None = None
    ) -> Decided:
        """Decide on the state as it is now, on all hosts or *only* some; raises NoValidHost.

        *offered*: uuids of the nodes to choose from, and how many instances each may get.
        What was chosen with settings that are no longer in force is not mended: then, *only* some
        hosts will not do.
        """
        began = time.perf_counter()
        try:
            with self._host_manager.lock:
                settings = self._current_settings()
                if only is not None and self._settings not in (None, settings):
                    raise errors.NoValidHost(reason=_RECONFIGURED)
                self._settings = settings
                return self._decide(settings, only, offered)
        finally:
            self.deciding_seconds += time.perf_counter() - began

    def selection_on(self, node_uuid: str) -> objects.Selection | None:
        """The Selection of the host with that node, without deciding; None if it is unknown."""
        manager = self._host_manager
        with manager.lock:
            rows = _rows_offered(manager.table, {node_uuid: None})
            if not len(rows):
                return None
            settings = self._current_settings()
            policy, spec = settings.policy, self._own_spec(settings)
            down_time = policy.service_down_time_seconds
            scope = Scope(manager.table, manager.clock(), down_time, policy.fitting)
            state = scope.state(int(rows[0]))
            limits = policy.chain.limits(state, spec)
            return selection_of(state, limits, settings.zone_if_none)

    def _own_spec(self, settings: Settings) -> objects.RequestSpec:
        spec = self._request.spec.copy()
        spec.config_options = settings.config_options()
        return spec

    def _decide(
        self,
        settings: Settings,
        only: Sequence[Key] | None,
        offered: Mapping[str, int | None] | None,
    ) -> Decided:
        request, manager = self._request, self._host_manager
        record = self._record(is_first=only is None)
        record.state_age_seconds = manager.state_age_seconds
        record.cells_left_out = tuple(
            each.uuid for each in manager.cell_health() if each.is_left_out
        )
        spec = self._own_spec(settings)
        rows = None if only is None else _rows(manager.table, only)
        if offered is not None:
            rows = _rows_offered(manager.table, offered)
        decision = Decision(
            manager.books,
            settings.policy,
            None,
            manager.clock(),
            record,
            self._watcher if only is None else None,
            rows,
            settings.results,
            _room(manager.table, offered or {}),
        )
        uuids, count = request.instance_uuids, request.count
        alternates = settings.max_attempts - 1 if request.with_alternates else 0
        placement = decision.place(spec, uuids, count, alternates)
        selections = selections_of(placement, settings.zone_if_none, settings.templates)
        self.record.note_chosen(selections)
        return Decided(selections, tuple(decision.picks))

    def _record(self, *, is_first: bool) -> DecisionRecord:
        """The request's record; what is decided again on a few hosts explains nothing."""
        kept = self.record
        if is_first:
            return kept
        return DecisionRecord(kept.request_id, kept.instance_uuids, kept.num_instances, kept.seed)


def _rows_offered(table: HostTable, offered: Mapping[str, int | None]) -> np.ndarray:
    """The rows of the nodes with these uuids, in the table's order."""
    value = table.value
    wanted = [row for row in table.order.tolist() if value(row, "uuid") in offered]
    return np.array(wanted, dtype=table.order.dtype)


def _room(table: HostTable, offered: Mapping[str, int | None]) -> dict[int, int]:
    """Per row, where that is known, how many instances it may get."""
    few = {uuid: room for uuid, room in offered.items() if room is not None}
    rows = _rows_offered(table, few).tolist() if few else []
    return {row: few[table.value(row, "uuid")] for row in rows}


def _rows(table: HostTable, keys: Sequence[Key]) -> np.ndarray:
    wanted = {table.rows[key] for key in keys if key in table.rows}
    if len(wanted) == 1:
        return np.array([*wanted], dtype=table.order.dtype)
    return table.order[np.isin(table.order, list(wanted))]
