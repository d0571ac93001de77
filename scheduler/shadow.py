"""A scheduler beside the one that answers: it decides the same requests, and compares.

It decides on what hosts report, as Nova's scheduler does.  What it reserves it gives back at once,
so that servers on their way do not count.
"""

import contextlib
import datetime
import enum
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import sqlalchemy as sa

from scheduler import errors
from scheduler.claims.backend import Offered, Request, Selections
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.placement.client import Requester, Unavailable
from scheduler.db import instances
from scheduler.db.database import FAILURES
from scheduler.db.databases import CELL0_UUID, Databases
from scheduler.db.tables import cell_mappings, instance_mappings
from scheduler.drivers.filter_scheduler import FilterScheduler, Settings
from scheduler.engine import evaluate
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.candidates import Candidates, narrow, rows_of_nodes
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.table import HostTable, Key

OUTCOME_SECONDS: Final = 60.0
"""After so long nobody waits for the outcome of a request."""
MOST_WAITING: Final = 32
MOST_STATES: Final = 12
"""Each waits with so many copies of the host table, if hosts go on to report: for 10,000 hosts
of 3 MB each.  Those that wait at the same time share most of them."""
NOTE_SECONDS: Final = 0.5
"""Time between copies while nobody waits.  The other scheduler may have had a request so long
before it is here."""
LATER: Final = 1.25
"""Ratio of a request's age to that when its outcome was asked for last: 25 times in a minute."""
NOTHING: Final[Offered | None] = Offered({})


class Result(enum.StrEnum):
    """Relation of a decision to the outcome, and the label of its metric."""

    AGREED = "agreed"
    STATE_MOVED = "state_moved"
    TIE = "tie"
    RANDOM_SUBSET = "random_subset"
    OUTCOME_UNKNOWN = "outcome_unknown"
    OTHER = "other"


@dataclass(frozen=True)
class State:
    """Reports of the hosts, as they were known at one time."""

    table: HostTable
    now: float
    #: The same time on the monotonic clock.
    noted_at: float
    #: Uuids of the nodes that Placement offered; None if it was not asked.
    nodes: frozenset[str] | None = None

    def among(self, offered: Offered | None) -> Self:
        """The same, if Placement offers these."""
        return replace(self, nodes=None if offered is None else frozenset(offered.nodes))


def reason_of(
    settings: Settings, request: Request, same: int, outcome: Sequence[Key], states: Sequence[State]
) -> Result:
    """The reason why instance number *same*, the first that differs, went where *outcome* says.

    *states* are that of the decision, and others from before the request until now.  No reason
    will do where another host was better all the time.
    """
    most, size = settings.policy.host_subset_size, min(each.table.capacity for each in states)
    totals = np.stack([_totals(settings, request, outcome[:same], each)[:size] for each in states])
    if not outcome:  # refused
        return Result.STATE_MOVED if np.isneginf(totals).all(axis=1).any() else Result.OTHER
    row = states[0].table.rows.get(outcome[same])
    if row is None or row >= size:
        return Result.STATE_MOVED  # the host is new
    its = totals[:, row]
    if its[0] > -np.inf and np.count_nonzero(totals[0] > its[0]) < most:
        return Result.TIE if most == 1 else Result.RANDOM_SUBSET
    better = np.count_nonzero((totals > its[:, None]).all(axis=0))
    return Result.STATE_MOVED if its.max() > -np.inf and better < most else Result.OTHER


def _totals(
    settings: Settings, request: Request, before: Sequence[Key], state: State
) -> np.ndarray:
    """By row the weight for one instance, if those *before* it are there; -inf for the refused."""
    policy, table, spec = settings.policy, state.table, settings.own_spec(request.spec)
    rows = [table.rows[key] for key in before if key in table.rows]
    amount = Consumption.from_request(spec, {}, policy.fitting).added if rows else {}
    spec.instance_uuid = request.names[len(before)]
    if (group := spec.instance_group) is not None:
        group.hosts = [*(group.hosts or []), *(host for host, _node in before)]
    scope = policy.scope(table, state.now)
    offered = table.order if state.nodes is None else rows_of_nodes(table, state.nodes)
    left = narrow(Candidates(scope, offered), spec, policy.semantics)
    table.add(rows, amount)
    found = evaluate(policy, left.hosts, spec, len(before), skip_filters=left.skip_filters)
    totals = np.full(table.capacity, -np.inf)
    totals[found.hosts.rows] = found.totals
    table.add(rows, amount, -1)
    return totals


@dataclass
class Waiting:
    """A decision whose outcome is not known yet; nothing is *decided* if it was refused."""

    request: Request
    #: The state of the decision; those from the last before the request on, oldest first.
    then: State
    states: list[State]
    decided: Sequence[Key] = ()
    began: float = field(default_factory=time.monotonic)
    #: The outcome is not asked for before this age.
    asked_at_seconds: float = 0.0


class ShadowScheduler(FilterScheduler):
    """Decides as the filter driver, claims nothing, and compares with what became of it."""

    notifies_of_selections = False
    CLAIMS_HOSTS = False

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self._results: Counter[Result] = Counter(dict.fromkeys(Result, 0))
        self._differences: deque[dict[str, Any]] = deque(maxlen=1000)
        self._waiting: list[Waiting] = []
        #: The states of the last seconds, and the table's version at the latest.
        self._noted: deque[State] = deque(maxlen=MOST_STATES)
        self._version = -1

    def shadow_report(self) -> dict[str, Any]:
        """Number of requests by result, and the latest that differ, the newest first."""
        return {
            "results": {result.value: count for result, count in self._results.items()},
            "waiting": len(self._waiting),
            "differences": list(self._differences)[::-1],
        }

    def _answer(self, request: Request, record: DecisionRecord) -> Selections:
        """Decide once, and keep the decision until its outcome is known."""
        then, offered = self._note(), NOTHING
        try:
            with self.claims.open(request) as claiming:
                record.placement = claiming.placement
                offered = claiming.offered()
            self.bring_state_up_to_date(request.arrived_at)
            with self.host_manager.lock:
                then = self._note()
                decided = self.decide(request, record, offered)
                self._release(decided)
                self._version = self.host_manager.table.version  # what was taken is given back
        except errors.NoValidHost:
            self._keep(request, then.among(offered))
            raise
        chosen = [first for first, *_alternates in decided.selections]
        keys = [(each.service_host, each.nodename) for each in chosen]
        self._keep(request, then.among(offered), keys)
        return decided.selections

    def _keep(self, request: Request, then: State, decided: Sequence[Key] = ()) -> None:
        since = (request.arrived_at or time.monotonic()) - NOTE_SECONDS
        with self.host_manager.lock:
            noted = list(self._noted)
            first = sum(each.noted_at < since for each in noted[1:])
            self._waiting.append(Waiting(request, then, noted[first:], decided))

    def _note(self, least_seconds: float = 0.0) -> State:
        """The hosts as they are known now, or were so long ago; who waits gets it, if it is new."""
        manager, now = self.host_manager, time.monotonic()
        with manager.lock:
            age = now - self._noted[-1].noted_at if self._noted else np.inf
            is_new = manager.table.version != self._version
            if age >= (least_seconds if is_new else NOTE_SECONDS):
                self._version = manager.table.version
                self._noted.append(State(manager.table.copy(), manager.clock(), now))
                for states in [each.states for each in tuple(self._waiting)]:
                    states.append(self._noted[-1])
                    if len(states) > MOST_STATES:  # of these every second one goes
                        del states[1:-1:2]
            return self._noted[-1]

    def look(self, read: Callable[[Request, Mapping[str, str]], list[Key] | None]) -> None:
        """Ask *read* for outcomes, and compare; called again and again by one thread.

        Of too many requests the oldest are given up, of far too many without a last question: who
        ends the thread waits for this.
        """
        with contextlib.suppress(errors.StateUnavailable):
            self.host_manager.refresh()
        self._note(0.0 if self._waiting else NOTE_SECONDS)
        excess = len(self._waiting) - MOST_WAITING
        for number, each in enumerate(list(self._waiting)):
            outcome = None
            age, is_asked = time.monotonic() - each.began, number >= excess - MOST_WAITING
            if is_asked and age >= each.asked_at_seconds:
                outcome = read(each.request, each.states[0].table.host_of_instance)
                each.asked_at_seconds = age * LATER
            if outcome is not None or age > OUTCOME_SECONDS or number < excess:
                self._waiting.remove(each)
                self._count(each, outcome)

    def compare(self, waiting: Waiting, outcome: Sequence[Key]) -> Result:
        """Compare the decision *waiting* with *outcome*, the hosts that its instances got."""
        if list(waiting.decided) == list(outcome):
            return Result.AGREED
        pairs = enumerate(zip(waiting.decided, outcome, strict=False))
        same = next((number for number, (here, there) in pairs if here != there), 0)
        request, offered = waiting.request, NOTHING
        with contextlib.suppress(errors.NoValidHost), self.claims.open(request) as claiming:
            offered = claiming.offered()
        with contextlib.suppress(errors.StateUnavailable):
            self.host_manager.refresh()
        then, latest = waiting.then, self._note().among(offered)
        others = [replace(each, nodes=then.nodes) for each in waiting.states]
        return reason_of(self.settings, request, same, outcome, [then, *others, latest])

    def _count(self, waiting: Waiting, outcome: Sequence[Key] | None) -> None:
        result = Result.OUTCOME_UNKNOWN if outcome is None else self.compare(waiting, outcome)
        self._results[result] += 1
        if result is not Result.AGREED:
            difference = {
                "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "request_id": getattr(waiting.request.context, "request_id", None),
                "instances": ", ".join(waiting.request.names),
                "decided": ", ".join(host for host, _node in waiting.decided),
                "outcome": ", ".join(host for host, _node in outcome or ()),
                "result": result.value,
            }
            self._differences.append(difference)


class Outcomes:
    """Reads where instances are: by their allocations, or else by the hosts in their rows."""

    def __init__(self, databases: Databases, driver: Any) -> None:
        self._databases, self._host_manager = databases, driver.host_manager
        claims = driver.claims
        self._client: Any = claims.client if isinstance(claims, PlacementClaims) else None

    def read(self, request: Request, homes: Mapping[str, str]) -> list[Key] | None:
        """The host and node of each instance, none if it was refused; None if that is not known.

        *homes* are the hosts that instances were on before.
        """
        if not (request.names and request.takes_hosts):
            return None
        find = self._by_row if self._client is None else self._by_allocations
        try:
            keys = [find(request, uuid, homes.get(uuid)) for uuid in request.names]
            if not any(keys):
                return [] if self._are_refused(request) else None
        except (Unavailable, *FAILURES, errors.NovaException):
            return None  # decisions say in the log what is away
        return [each[0] for each in keys] if all(len(each) == 1 for each in keys) else None

    def _by_allocations(self, request: Request, uuid: str, _home: str | None) -> list[Key]:
        """Nodes with allocations, but for those that the request rules out as its source."""
        requester = Requester(None, None, None).within(2.0)  # it is asked again
        allocated = self._client.allocations(uuid, requester)["allocations"]
        ruled_out = {each.lower() for each in request.spec.ignore_hosts or ()}
        with self._host_manager.lock:
            table = self._host_manager.table
            keys = [table.keys[row] for row in rows_of_nodes(table, allocated).tolist()]
        return [key for key in keys if key[0].lower() not in ruled_out]

    def _by_row(self, _request: Request, uuid: str, home: str | None) -> list[Key]:
        with self._host_manager.lock:
            table = self._host_manager.table
            host = table.host_of_instance.get(uuid)
            if host in (None, home):
                return []
            keys = [table.keys[row] for row in table.row_numbers((host,))]
            node = table.instances[host][uuid].node
        return [key for key in keys if node in (None, key[1])]

    def _are_refused(self, request: Request) -> bool:
        """True when the conductor has given all of them up before they were on any host."""
        names = request.names
        if not self._databases.has_cells:
            with self._databases.main.read() as connection:
                rows = instances.rows_by_uuid(connection, names).values()
            return [each.vm_state for each in rows if each.host is None] == ["error"] * len(names)
        cell = instance_mappings.c.cell_id == cell_mappings.c.id
        buried = sa.select(sa.func.count()).where(cell, cell_mappings.c.uuid == CELL0_UUID)
        with self._databases.api.read() as connection:
            these = buried.where(instance_mappings.c.instance_uuid.in_(names))
            return connection.execute(these).scalar() == len(names)
