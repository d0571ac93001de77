"""The hosts still in question for one request, as columns.

Filters and weighers read whole columns (``hosts.free_ram_mb``); they are views of the table until
a host is removed.  A predicate over a document is evaluated once per distinct document
(``hosts.per_document``).  Liveness is judged here, at the moment of the decision, from the last
heartbeat seen.
"""

import contextlib
import functools
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from oslo_log import log as logging

from scheduler import errors, semantics
from scheduler.hosts import aggregate_metadata, columns
from scheduler.hosts.host_state import Fitting, HostState
from scheduler.hosts.table import HostTable
from scheduler.semantics import Semantics

LOG = logging.getLogger(__name__)

#: The scheduler hint with which Nova asks for a check of a host instead of a placement.
CHECK_TYPE_HINT = "_nova_check_type"
_OVERRIDE = np.dtype([("given", np.bool_), ("value", np.float64)])


def heard_in_time(last_seen: np.ndarray, now: float, tolerance_seconds: float) -> np.ndarray:
    """Mask of those last seen no further from now than the tolerance, in past or future."""
    return np.abs(now - last_seen) <= tolerance_seconds


@dataclass(slots=True, eq=False)
class Scope:
    """Parts that all candidates of one decision share: table, clock reading, host-state views.

    A decision of at most *most_seconds* has to end at *ends_at*, on the monotonic clock.
    """

    table: HostTable
    now: float
    service_down_time_seconds: float
    fitting: Fitting = Fitting()
    most_seconds: float = math.inf
    ends_at: float = math.inf
    _states: dict[int, HostState] = field(default_factory=dict, repr=False)

    def state(self, row: int) -> HostState:
        """The one HostState of *row* within this decision."""
        state = self._states.get(row)
        if state is None:
            state = self._states[row] = HostState(self.table, row, self)
        return state

    def require_time(self, place: str, index: int = 0) -> None:
        """Raise DecisionGivenUp when the decision has taken too long."""
        if time.monotonic() > self.ends_at:
            raise errors.DecisionGivenUp(seconds=self.most_seconds, number=index + 1, place=place)


class Candidates:
    """An ordered selection of rows.  Column attributes give one value per candidate."""

    def __init__(self, scope: Scope, rows: np.ndarray) -> None:
        self.scope = scope
        self.rows = rows
        #: Index of the candidates in whole columns: a slice gives views, row numbers copies.
        self.at: Any = rows
        if rows is scope.table.order and scope.table.is_dense:
            self.at = slice(0, len(rows))

    @property
    def table(self) -> HostTable:
        return self.scope.table

    @classmethod
    def alone(cls, state: HostState) -> Self:
        """The one host that *state* is a view of, within the decision it was made for."""
        return cls(state.scope, np.array([state.row], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in columns.COLUMN_TYPES:
            column = self.scope.table.column(name)
            # take() is a third quicker than an index by row numbers.
            found = column.take(self.rows) if self.at is self.rows else column[self.at]
            self.__dict__[name] = found
            return found
        raise AttributeError(f"the host table has no column {name!r}")

    def __iter__(self) -> Iterator[HostState]:
        return iter(self.states())

    def take(self, chosen: np.ndarray) -> "Candidates":
        """The candidates at *chosen* (a mask or positions), in that order."""
        # The places of a mask first: half the time of an index by the mask itself.
        chosen = np.asarray(chosen)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)
        return Candidates(self.scope, self.rows.take(chosen))

    def states(self) -> list[HostState]:
        """The candidates one by one, for code that looks at single hosts."""
        return [self.scope.state(row) for row in self.rows.tolist()]

    @contextlib.contextmanager
    def asked_by(self, name: str) -> Iterator[Iterator[HostState]]:
        """The candidates one by one for a class called *name*, whose faults name the host, too."""
        states, asked = self.states(), None

        def each() -> Iterator[HostState]:
            nonlocal asked
            for state in states:
                asked = state
                yield state

        try:
            yield each()
        except Exception as error:
            if errors.code_of(error) != errors.INTERNAL_FAULT:
                raise
            host = "" if asked is None else asked.host
            raise errors.ExtensionFailed.from_error(error, name, host) from error

    def everything(self, verdict: bool) -> np.ndarray:
        return np.full(len(self.rows), verdict, dtype=np.bool_)

    def constant(self, value: Any, dtype: Any = np.float64) -> np.ndarray:
        """A read-only array of *value* for every candidate, which takes no memory per host."""
        return columns.constant(value, len(self.rows), dtype)

    def per_document(
        self, name: str, read: Callable[[Any], Any], dtype: Any = np.bool_, key: Hashable = None
    ) -> np.ndarray:
        """``read(document)`` per candidate, called once per distinct parsed document.

        With a *key* the answers are remembered between decisions: it must say all that they
        depend on besides the document.
        """
        table = self.scope.table
        pool, numbers = table.pools[name], table.column(name)[self.at]
        return pool.memo(key, dtype).of_numbers(
            numbers, lambda missing: {number: read(pool.parsed(number)) for number in missing}
        )

    #: ``read(text)`` per candidate.
    per_value = per_document

    def per_combination(
        self,
        names: Sequence[str],
        answer: Callable[[Mapping[int, tuple[Any, ...]]], Mapping[int, bool]],
        key: Hashable,
    ) -> np.ndarray:
        """A remembered truth value per candidate, for what is costly to find out.

        *answer* is given, by number, the distinct combinations of the documents and numbers
        *names* that are not known yet, all at once.
        """
        pool, numbers = self.scope.table.combinations(tuple(names))
        parsed = self.scope.table.parsed_values
        return pool.memo(key, np.bool_).of_numbers(
            numbers[self.at],
            lambda missing: answer({each: parsed(names, pool.content(each)) for each in missing}),
        )

    def documents(self, name: str) -> tuple[list[Any], np.ndarray]:
        """The distinct texts or parsed documents, and per candidate the position of its own."""
        table = self.scope.table
        pool, numbers = table.pools[name], table.column(name)[self.at]
        present = np.flatnonzero(np.bincount(numbers, minlength=1))
        places = np.zeros(pool.capacity, dtype=np.int64)
        places[present] = np.arange(len(present))
        return [pool.parsed(number) for number in present.tolist()], places[numbers]

    def having(self, name: str, wanted: Iterable[Any]) -> np.ndarray:
        """Mask of candidates whose text is one of those *wanted*."""
        pool = self.scope.table.pools[name]
        numbers = pool.find(wanted)
        if len(set(numbers)) == len(pool):
            return self.everything(True)
        mask = np.zeros(pool.capacity, dtype=np.bool_)
        mask[numbers] = True
        return mask[self.scope.table.column(name)[self.at]]

    def named(self, hosts: Iterable[str]) -> np.ndarray:
        """Mask of candidates whose host name is one of *hosts* (exact case)."""
        return self.among(self.scope.table.row_numbers(hosts))

    def among(self, rows: list[int]) -> np.ndarray:
        of_row = np.zeros(self.scope.table.capacity, dtype=np.bool_)
        of_row[rows] = True
        return of_row[self.at]

    def count_instances(self, uuids: Iterable[str]) -> np.ndarray:
        """Number of the instances *uuids* that each candidate's host runs, or is to run."""
        table, wanted = self.table, set(uuids)
        home_of, reserved = table.host_of_instance, table.reserved_hosts
        places = {(uuid, home_of[uuid]) for uuid in home_of.keys() & wanted}
        places |= {(uuid, host) for uuid in reserved.keys() & wanted for host in reserved[uuid]}
        rows = table.rows_showing_instances([host for _uuid, host in places])
        if not rows:
            return self.constant(0, np.int64)
        return np.bincount(rows, minlength=table.capacity)[self.at]

    @functools.cached_property
    def aggregate_keys(self) -> set[str]:
        """The metadata keys that the aggregates of any host have."""
        keys, pool = aggregate_metadata.keys, self.scope.table.pools["aggregates"]
        return pool.derived("keys", lambda each: set().union(*map(keys, each)))

    def overridden(
        self, key: str, cast: Callable[[str], float], otherwise: np.ndarray | float
    ) -> np.ndarray:
        """Per host the smallest value of *key* on its aggregates, else *otherwise*."""

        def read(aggregates: list[Any]) -> tuple[bool, float]:
            number = aggregate_metadata.smallest(aggregates, key, cast)
            return number is not None, number or 0.0

        if key not in self.aggregate_keys:
            return np.broadcast_to(otherwise, len(self))
        found = self.per_document("aggregates", read, _OVERRIDE, key=("override", key, cast))
        return np.where(found["given"], found["value"], otherwise)

    @property
    def service_up(self) -> np.ndarray:
        """Mask of hosts that are not forced down and were heard from in time.

        A heartbeat too far in the future counts as down as well (scheduling page, section 10).
        """
        tolerance = self.scope.service_down_time_seconds
        heard = heard_in_time(self.service_last_seen, self.scope.now, tolerance)
        return ~self.service_forced_down & heard


def rows_of_nodes(table: HostTable, uuids: Iterable[Any], *, but: bool = False) -> np.ndarray:
    """Rows of the compute nodes with these *uuids* that have a service, in the table's order.

    With *but* those of all others.
    """
    everyone = Candidates(Scope(table, 0.0, 0.0), table.order)
    named = everyone.having("uuid", uuids)
    if but and not named.any():
        return everyone.rows
    return everyone.rows[~named if but else named]


# --- before any filter (reference page filters, section 4) ------------------------------------


class Narrowed:
    """The hosts left; ``skip_filters`` when forcing decided alone; removed hosts per reason."""

    def __init__(self, hosts: Candidates, request: Any) -> None:
        self.hosts = hosts
        self.removed: dict[str, int] = {}
        forced = bool(request.force_hosts or request.force_nodes)
        self.skip_filters = forced and not (request.scheduler_hints or {}).get(CHECK_TYPE_HINT)

    def keep(self, code: str, mask: np.ndarray) -> None:
        """Keep the hosts of *mask*; the others are removed for the reason *code*."""
        if not mask.all():
            self.removed[code] = int(np.count_nonzero(~mask))
            self.hosts = self.hosts.take(mask)


def narrow(hosts: Candidates, request: Any, chosen: Semantics = semantics.CURRENT) -> Narrowed:
    """Apply cell, destination, ignore and force lists of *request*, in that order.

    A disabled cell takes no request but those that ask for it (page database, section 7).  Names
    of the ignore and force lists compare without case, nodes and the destination exactly.  The
    *chosen* semantics say which nodes a destination without a node means.
    """
    left = Narrowed(hosts, request)
    cells, destination = hosts.table.cells, request.requested_destination
    cell = None
    if destination is not None and not destination.allow_cross_cell_move:
        cell = destination.cell
    disabled = [] if cell else [uuid for uuid, is_disabled in cells.items() if is_disabled]
    if disabled:
        left.keep("cell.disabled", ~left.hosts.having("cell_uuid", disabled))
    if cell and cells:  # of an undivided fleet all
        left.keep("destination.other_cell", left.hosts.having("cell_uuid", (cell.uuid,)))
    if destination is not None and (destination.host or destination.node):
        _keep_destination(left, destination, chosen)
    if request.ignore_hosts:
        _drop_ignored(left, {name.lower(): name for name in request.ignore_hosts})
    if wanted := request.force_hosts:
        names = hosts.table.spellings({name.lower() for name in wanted})
        _keep_forced(left, "hosts", "host", left.hosts.named(names), wanted)
    if wanted := request.force_nodes:
        _keep_forced(left, "nodes", "nodename", left.hosts.having("nodename", wanted), wanted)
    return left


def request_is_rebuild(request: Any) -> bool:
    """True iff the request is a rebuild check on the instance's own host."""
    hints = getattr(request, "scheduler_hints", None) or {}
    return hints.get(CHECK_TYPE_HINT) == ["rebuild"]


def has_group(request: Any, policy: str) -> bool:
    group = request.instance_group
    return group is not None and group.policy == policy


def _keep_destination(left: Narrowed, destination: Any, chosen: Semantics) -> None:
    host, node = destination.host, destination.node
    fits = left.hosts.per_document("nodename", lambda each: chosen.destination_node(node, each))
    left.keep("destination.other", left.hosts.named([host]) & fits if host else fits)
    if len(left.hosts):
        LOG.info("Host filter only checking host %s and node %s", host, node)
    else:
        LOG.info("No hosts matched due to not matching requested destination (%s, %s)", host, node)


def _drop_ignored(left: Narrowed, names: dict[str, str]) -> None:
    """Leave out the hosts with these *names* in lower case, which the request spells so."""
    ignored = left.hosts.named(left.hosts.table.spellings(names))
    dropped = [names[state.host.lower()] for state in left.hosts.take(ignored)]
    LOG.info("Host filter ignoring hosts: %s", ", ".join(dropped))
    left.keep("ignore_hosts.named", ~ignored)


def _keep_forced(left: Narrowed, kind: str, column: str, mask: np.ndarray, names: Any) -> None:
    left.keep(f"force_{kind}.other", mask)
    if len(left.hosts):
        found = ", ".join(str(getattr(each, column)) for each in left.hosts)
        LOG.info("Host filter forcing available %s to %s", kind, found)
    else:
        listed = ", ".join(names)
        LOG.info("No %s matched due to not matching 'force_%s' value of '%s'", kind, kind, listed)
