"""The hosts still in question for one request, as columns.

Filters and weighers read whole columns (``hosts.free_ram_mb``); a predicate over a document is
evaluated once per distinct document (``hosts.per_document``).  Liveness is judged here, at the
moment of the decision, from the last heartbeat seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.fitting import Fitting
from scheduler.hosts.host_state import HostState
from scheduler.hosts.liveness import heard_in_time
from scheduler.hosts.table import HostTable

#: So few rows are looked up one by one.
_FEW = 64


class Scope:
    """What all candidates of one decision share: table, clock reading, host-state views."""

    def __init__(
        self,
        table: HostTable,
        now: float,
        service_down_time_seconds: float,
        fitting: Fitting = Fitting(),  # noqa: B008  (a value)
    ) -> None:
        self.table = table
        self.now = now
        self.service_down_time_seconds = service_down_time_seconds
        self.fitting = fitting
        #: What was found out in this decision, per question and what the answer depends on.
        self.answers: dict[Hashable, dict[tuple[Any, ...], Any]] = {}
        self._states: dict[int, HostState] = {}

    def state(self, row: int) -> HostState:
        """The one HostState of *row* within this decision."""
        state = self._states.get(row)
        if state is None:
            state = self._states[row] = HostState(self.table, row, self)
        return state


class Candidates:
    """An ordered selection of rows.  Column attributes give one value per candidate."""

    def __init__(self, scope: Scope, rows: np.ndarray) -> None:
        self.scope = scope
        self.table = scope.table
        self.rows = rows
        self._distinct: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @classmethod
    def alone(cls, state: HostState) -> Candidates:
        """The one host that *state* is a view of, within the decision it was made for."""
        return cls(state.scope, np.array([state.row], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in columns.COLUMN_TYPES:
            return self.table.column(name)[self.rows]
        raise AttributeError(f"the host table has no column {name!r}")

    def __iter__(self) -> Iterator[HostState]:
        return iter(self.states())

    def take(self, chosen: np.ndarray) -> Candidates:
        """The candidates at *chosen* (a mask or positions), in that order."""
        return Candidates(self.scope, self.rows[chosen])

    def states(self) -> list[HostState]:
        """The candidates one by one, for code that looks at single hosts."""
        return [self.scope.state(row) for row in self.rows.tolist()]

    def everything(self, verdict: bool) -> np.ndarray:
        """A mask of *verdict* for every candidate."""
        return np.full(len(self.rows), verdict, dtype=np.bool_)

    def per_document(
        self, name: str, read: Callable[[Any], Any], dtype: Any = np.bool_
    ) -> np.ndarray:
        """``read(document)`` per candidate, called once per distinct parsed document."""
        documents, positions = self.documents(name)
        return np.array([read(each) for each in documents], dtype=dtype)[positions]

    def documents(self, name: str) -> tuple[list[Any], np.ndarray]:
        """The distinct parsed documents, and per candidate the position of its own among them."""
        numbers, positions = self._distinct_documents(name)
        pool = self.table.pools[name]
        return [pool.parsed(number) for number in numbers.tolist()], positions

    def _distinct_documents(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        known = self._distinct.get(name)
        if known is None:
            numbers = self.table.document_numbers(name)[self.rows]
            known = np.unique(numbers, return_inverse=True)
            if name not in columns.CHANGED_BY_PICKS:
                self._distinct[name] = known
        return known

    def per_combination(
        self, question: Hashable, names: Sequence[str], answer: Callable[..., Any]
    ) -> np.ndarray:
        """``answer(*values)``, a truth value, per candidate, for what is costly to find out.

        Called once per distinct combination of the documents and numbers *names* within one
        decision; *question* must say everything else that the answer depends on.
        """
        if not len(self.rows):
            return self.everything(True)
        distinct = [self._distinct_numbers(name) for name in names]
        sizes = tuple(len(numbers) for numbers, _positions in distinct)
        codes = np.ravel_multi_index(tuple(positions for _numbers, positions in distinct), sizes)
        combinations, inverse = np.unique(codes, return_inverse=True)
        chosen = np.unravel_index(combinations, sizes)
        keys = [numbers[at].tolist() for (numbers, _pos), at in zip(distinct, chosen, strict=True)]
        known = self.scope.answers.setdefault(question, {})
        for key in zip(*keys, strict=True):
            if key not in known:
                known[key] = answer(*map(self._value, names, key))
        found = np.array([known[key] for key in zip(*keys, strict=True)], dtype=np.bool_)
        return found[inverse]

    def _distinct_numbers(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name in columns.DOCUMENT_PARSERS:
            return self._distinct_documents(name)
        return np.unique(getattr(self, name), return_inverse=True)

    def _value(self, name: str, number: Any) -> Any:
        pool = self.table.pools.get(name)
        return number if pool is None else pool.parsed(number)

    def per_value(self, name: str, read: Callable[[Any], Any], dtype: Any = np.bool_) -> np.ndarray:
        """``read(value)`` per candidate, called once per distinct value of a column."""
        if name in columns.OBJECT_COLUMNS:
            values = [self.table.value(row, name) for row in self.rows.tolist()]
            results = {value: read(value) for value in dict.fromkeys(values)}
            return np.array([results[value] for value in values], dtype=dtype)
        distinct, positions = np.unique(getattr(self, name), return_inverse=True)
        return np.array([read(value) for value in distinct.tolist()], dtype=dtype)[positions]

    def named(self, hosts: Iterable[str]) -> np.ndarray:
        """Mask of candidates whose host name is one of *hosts* (exact case)."""
        return self.among(self.table.row_numbers(hosts))

    def running_on(self, hosts: Iterable[str]) -> np.ndarray:
        """Mask of candidates that show the instances of one of *hosts* (exact case)."""
        return self.among(self.table.rows_showing_instances(hosts))

    def among(self, rows: list[int]) -> np.ndarray:
        """Mask of candidates whose row is one of *rows*."""
        of_row = np.zeros(self.table.capacity, dtype=np.bool_)
        of_row[rows] = True
        return of_row[self.rows]

    def count_instances(self, uuids: Iterable[str]) -> np.ndarray:
        """How many of the instances *uuids* each candidate's host runs."""
        shown = self.table.showing_instances(uuids)
        if not shown:
            return np.zeros(len(self.rows), dtype=np.int64)
        if len(self.rows) <= _FEW:
            return np.array([shown.get(row, 0) for row in self.rows.tolist()], dtype=np.int64)
        of_row = np.zeros(self.table.capacity, dtype=np.int64)
        of_row[list(shown)] = list(shown.values())
        return of_row[self.rows]

    @property
    def service_up(self) -> np.ndarray:
        """Mask of hosts that are not forced down and were heard from in time.

        A heartbeat too far in the future counts as down as well (scheduling page, section 10).
        """
        tolerance = self.scope.service_down_time_seconds
        heard = heard_in_time(self.service_last_seen, self.scope.now, tolerance)
        return ~self.service_forced_down & heard


class OneCandidate(Candidates):
    """One host, whose columns are single numbers, for code that can do with these."""

    def __init__(self, scope: Scope, row: int) -> None:
        super().__init__(scope, np.array([row], dtype=np.int64))
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name in columns.COLUMN_TYPES:
            return self.table.column(name)[self._row]
        raise AttributeError(f"the host table has no column {name!r}")
