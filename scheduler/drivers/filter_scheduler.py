"""The filter driver and the caching driver, which differ in when they read the state.

Reference page scheduling, sections 2 and 3.  The loop of :meth:`FilterScheduler._answer` is the
only place where a request is decided again.
"""

import contextlib
import copy
import functools
import json
import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from oslo_log import log as logging

from scheduler import errors, objects, semantics
from scheduler.claims import backend
from scheduler.drivers.base import Scheduler
from scheduler.drivers.selections import selection_of, selections_of
from scheduler.engine.decision import decide
from scheduler.engine.evaluation import FilterChain, Policy
from scheduler.engine.record import CLAIM, REFRESH, DecisionRecord
from scheduler.explain.refusal import note_refusal
from scheduler.filters.registry import load_filters
from scheduler.hosts.candidates import Candidates, Scope, rows_of_nodes
from scheduler.hosts.host_state import Fitting
from scheduler.hosts.refresh import is_due
from scheduler.hosts.table import HostTable
from scheduler.weights.registry import load_weighers

LOG = logging.getLogger(__name__)

MOST_DECISIONS: Final = 50
"""Limit of lost races.  One of those who race is claimed, so only as many schedulers reach it."""
PAUSES_SECONDS: Final = (0.0, 0.01, 0.02, 0.05, *[0.1] * 16)
"""Pauses of a request that waits for reservations in doubt: in all less than two seconds.  The
first time it reads once more in any case: an instance may have arrived between the read of its row
and that of its host's report, which then counts it beside its claim."""

#: Seconds between two checks of the file of options.
CHECK_SECONDS = 300


class JsonOptions:
    """Options for third-party filters and weighers from the JSON file at *path*, if any.

    Scheduling page, section 12.  *clock* gives seconds.  ``known`` is what could be read last.
    """

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = path
        self.known: Any = {}
        self._clock = clock
        self._checked_at = -math.inf
        self.current()

    def current(self) -> Any:
        """The content as of at most five minutes ago; empty if it is no JSON."""
        now = self._clock()
        if self.path and is_due(self._checked_at, CHECK_SECONDS, now):
            self._checked_at = now
            LOG.debug("Start to check scheduler configuration file at: %s", self.path)
            self._read()
        return self.known

    def _read(self) -> None:
        LOG.debug("Loading scheduler options file %s", self.path)
        try:
            self.known = json.loads(pathlib.Path(self.path).read_bytes()) or {}
        except OSError:
            LOG.exception("Could not stat scheduler options file %s", self.path)
        except (ValueError, RecursionError):
            LOG.exception("Could not decode scheduler options")
            self.known = {}


@dataclass(frozen=True, slots=True)
class Settings:
    """Policy of choice, and what follows from that: a reload replaces it as a whole.

    A decision takes its settings once, under the decision lock: it never sees half of a reload.
    """

    policy: Policy
    json_options: JsonOptions
    max_attempts: int
    zone_if_none: str

    @classmethod
    def from_conf(cls, conf: Any, host_manager: Any) -> Self:
        """Everything loaded and built; raises errors that name the option."""
        return cls(
            configured_policy(conf, host_manager),
            JsonOptions(conf.scheduler_json_config_location, host_manager.clock),
            conf.scheduler.max_attempts,
            conf.default_availability_zone,
        )

    def own_spec(self, spec: objects.RequestSpec) -> objects.RequestSpec:
        """A copy of *spec* for one decision, which changes it; no file is read."""
        own = spec.copy()
        own.config_options = copy.deepcopy(self.json_options.known)
        return own


def configured_policy(conf: Any, host_manager: Any) -> Policy:
    """Policy of choice, with filters and weighers loaded; raises errors that name the option."""
    return Policy(
        chain=FilterChain(load_filters(conf, host_manager.option_of_filters(conf))),
        weighers=load_weighers(conf),
        host_subset_size=conf.filter_scheduler.host_subset_size,
        shuffle_best_same_weighed_hosts=conf.filter_scheduler.shuffle_best_same_weighed_hosts,
        service_down_time_seconds=conf.service_down_time,
        semantics=semantics.from_conf(conf),
        fitting=Fitting.from_conf(conf),
        most_seconds=conf.scheduler.max_decision_seconds or math.inf,
    )


class FilterScheduler(Scheduler):
    """Places instances on the best hosts that pass every filter."""

    notifies_of_selections = True
    CLAIMS_HOSTS = True

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.settings = Settings.from_conf(conf, host_manager)
        self.pause: Callable[[float], None] = time.sleep
        #: Entered around each decision with all that it depends on, under the decision lock.
        self.watch: Callable[[Any], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        alloc_reqs_by_rp_uuid: Any = None,
        provider_summaries: Any = None,
        allocation_request_version: str | None = None,
        return_alternates: bool = False,
    ) -> list[list[objects.Selection]]:
        """See the base class.  The request object given is not changed."""
        uuids = tuple(instance_uuids or ())
        request = backend.Request(context, spec_obj, uuids, return_alternates)
        with self.recorder.decision(type(self).__name__, context, spec_obj, uuids) as record:
            self.settings.json_options.current()
            return self._answer(request, record)

    def run_periodic_tasks(self, context: Any) -> None:
        """See which claims are over, also when nobody asks for hosts."""
        if self.claims.needs_database:
            self.host_manager.refresh()

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        settings = Settings.from_conf(conf, self.host_manager)
        take_base = super().reconfigured(conf)

        def take() -> None:
            take_base()
            self.settings = settings

        return take

    def bring_state_up_to_date(self, arrived_at: float | None) -> None:
        """Make sure that the state was read after *arrived_at* (monotonic clock), or nearly so."""
        if not (fresh_seconds := self.host_manager.state_fresh_seconds):
            self.host_manager.refresh(arrived_at)
            return
        self.host_manager.refresh((arrived_at or time.monotonic()) - fresh_seconds)
        self.claims.read_new()

    def _read_for(self, request: backend.Request) -> None:
        self.bring_state_up_to_date(request.arrived_at)
        if self._is_older_than(request) and request.is_bound(self.host_manager):
            self.host_manager.refresh(request.arrived_at)

    def _is_older_than(self, request: backend.Request) -> bool:
        """True when the state is too old to refuse *request*."""
        seconds = self.host_manager.state_fresh_seconds
        return seconds > 0 and not self.host_manager.is_read_since(request.arrived_at)

    def _may_lack_hosts(self, request: backend.Request, decided: backend.Decided) -> bool:
        """True when alternates that are wanted may be on hosts that an older state lacks."""
        wanted = self.settings.max_attempts if request.with_alternates else 1
        return self._is_older_than(request) and any(len(row) < wanted for row in decided.selections)

    # --- the loop ------------------------------------------------------------------------

    def _answer(self, request: backend.Request, record: DecisionRecord) -> backend.Selections:
        """Decide until what was decided is claimed, or the request is refused for good.

        Raises NoValidHost, and ClaimConflict when others were faster MOST_DECISIONS times.
        """
        pauses = iter(PAUSES_SECONDS)
        with self.claims.open(request) as claiming:
            record.placement = claiming.placement
            self._timed(record, REFRESH, self._read_for, request)
            reads_again = self.claims.needs_database or self._is_older_than(request)
            while record.races_lost < MOST_DECISIONS:
                try:
                    offered = self._timed(record, CLAIM, claiming.offered)
                    decided = self.decide(request, record, offered)
                except errors.NoValidHost as refusal:
                    waits = reads_again or self._fits_without_doubt(request, record, claiming)
                    pause, reads_again = next(pauses, None) if waits else None, False
                    if pause is not None:
                        if pause:
                            self.pause(pause)
                        self._read_again(record)
                        continue
                    result = self._timed(record, CLAIM, claiming.refused, refusal)
                else:
                    if reads_again and self._may_lack_hosts(request, decided):
                        reads_again = False
                        self._release(decided)
                        self._read_again(record)
                        continue
                    result = self._timed(record, CLAIM, claiming.book, decided)
                if not isinstance(result, backend.Lost):
                    return self._selections(result, record)
                if not result.is_race:
                    continue
                LOG.debug("Others have claimed what was chosen for %s", request.names)
                record.claim, record.races_lost = result.outcome, record.races_lost + 1
                if result.needs_read:
                    self._read_again(record)
            conflict = errors.ClaimConflict(attempts=MOST_DECISIONS)
            return self._selections(self._timed(record, CLAIM, claiming.refused, conflict), record)

    def _read_again(self, record: DecisionRecord) -> None:
        """Read the state; raises StateUnavailable where nothing can be claimed without."""
        self._timed(record, REFRESH, self.host_manager.refresh)
        if self.claims.needs_database and self.host_manager.is_failing:
            raise errors.StateUnavailable(reason="claims cannot be read")

    @staticmethod
    def _timed(record: DecisionRecord, stage: str, work: Callable[..., Any], *args: Any) -> Any:
        began = time.perf_counter()
        try:
            return work(*args)
        finally:
            record.add_stage(stage, began)

    def _fits_without_doubt(
        self, request: backend.Request, record: DecisionRecord, claiming: backend.Claiming
    ) -> bool:
        """True when the request fits if no reservation in doubt takes anything; none is made."""
        reservations = self.host_manager.reservations
        with self.host_manager.lock:
            doubtful = claiming.in_doubt()
            # What was in doubt when it was refused may be given back by now.
            if not doubtful and not self.claims.needs_database:
                return False
            unseen = DecisionRecord(record.request_id, request.names, request.count, record.seed)
            unseen.stages_ms = record.stages_ms
            with reservations.without(doubtful):
                try:
                    decided = self.decide(request, unseen)
                except errors.NoValidHost:
                    return False
                self._release(decided)
        return True

    def _release(self, decided: backend.Decided) -> None:
        with self.host_manager.lock:
            self.host_manager.reservations.release_all(decided.reservations)

    def decide(
        self,
        request: backend.Request,
        record: DecisionRecord,
        offered: backend.Offered | None = None,
    ) -> backend.Decided:
        """Decide on the state as it is now, among the hosts *offered*; raises NoValidHost.

        The reservations are on the table when the decision lock is given back.
        """
        manager = self.host_manager
        with manager.lock:
            settings, table = self.settings, manager.table
            now, read_at = manager.clock(), manager.read_at
            record.state_age_seconds = None if read_at is None else max(0.0, now - read_at)
            record.cells_left_out = manager.cells_left_out
            spec = settings.own_spec(request.spec)
            rows = None if offered is None else _rows(table, offered)
            room = {} if offered is None else _room(table, offered.nodes)
            with self.watch((request, record, settings, now, rows, room)):
                placement = decide(
                    settings.policy,
                    manager.reservations,
                    spec,
                    request.instance_uuids,
                    request.count,
                    settings.max_attempts - 1 if request.with_alternates else 0,
                    now=now,
                    record=record,
                    rows=rows,
                    room=room,
                    on_refusal=functools.partial(note_refusal, record, settings.policy, spec),
                )
                selections = selections_of(placement, settings.zone_if_none)
                record.note_chosen(selections)
            return backend.Decided(selections, placement.reservations)

    # --- answers -------------------------------------------------------------------------

    def _selections(
        self, result: backend.Booked | backend.Repeated, record: DecisionRecord
    ) -> backend.Selections:
        if result.outcome is None:
            record.stages_ms.pop(CLAIM, None)
        record.claim = result.outcome
        if isinstance(result, backend.Repeated) and result.placed:
            return [self._on_node(each) for each in result.placed]
        return result.selections

    def _on_node(self, placed: backend.Placed) -> list[objects.Selection]:
        """The Selections of an instance that has its host by an earlier delivery."""
        manager, settings = self.host_manager, self.settings
        policy, spec = settings.policy, settings.own_spec(placed.request.spec)
        with manager.lock:
            (row,) = rows_of_nodes(manager.table, [placed.node_uuid]).tolist()
            state = policy.scope(manager.table, manager.clock()).state(row)
            limits = policy.chain.limits(state, spec)
            chosen = selection_of(state, limits, settings.zone_if_none)
        chosen.allocation_request = placed.allocation_request
        chosen.allocation_request_version = placed.version
        return [chosen, *placed.alternates]


class CachingScheduler(FilterScheduler):
    """Decides from memory, on state that a periodic task reads.

    Liveness is judged at decision time from the last heartbeat that was read, so keep the period
    below ``service_down_time`` minus ``report_interval``.
    """

    USES_ALLOCATION_CANDIDATES = False

    def _is_older_than(self, request: backend.Request) -> bool:
        """Never: state of any age is what this driver is asked to decide on."""
        return False

    def run_periodic_tasks(self, context: Any) -> None:
        self.host_manager.refresh()

    def bring_state_up_to_date(self, arrived_at: float | None) -> None:
        """Read the state only if it was never read; it may not be old because reads fail."""
        if self.host_manager.read_at is None:
            self.host_manager.refresh(arrived_at)
        if self.host_manager.is_failing:
            self.host_manager.require_state()
        self.claims.read_new()


def _rows(table: HostTable, offered: backend.Offered) -> np.ndarray:
    nodes = offered.nodes.items()
    if not offered.others:
        return rows_of_nodes(table, [uuid for uuid, room in nodes if room != 0])
    rows = rows_of_nodes(table, [None, *(uuid for uuid, room in nodes if room == 0)], but=True)
    if offered.grantable is None:
        return rows
    return rows[offered.grantable(Candidates(Scope(table, 0.0, 0.0), rows))]


def _room(table: HostTable, offered: Mapping[str, int | None]) -> dict[int, int]:
    """Per row, where that is known, how many instances it may get."""
    few = {uuid: room for uuid, room in offered.items() if room}
    rows = rows_of_nodes(table, few).tolist() if few else []
    return {row: few[table.value(row, "uuid")] for row in rows}
