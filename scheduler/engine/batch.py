"""Several instances at once, before the table has any of them.

Filters and weighers are asked once per level: all hosts as if they had *k* servers of this
request, which is columns plus *k* times the flavor.  1,000 servers on 10,000 hosts take some 35 ms
so; asked one by one they take 600.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from scheduler.engine.evaluation import (
    Bounds,
    Evaluation,
    Policy,
    bounds_for,
    extremes,
    share,
    some,
    weighted,
)
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import Consumption


class NeedsTable(Exception):
    """A filter or weigher looks at more than columns, so it cannot be asked ahead."""


class _Ahead(Candidates):
    """The same hosts with *times* more instances of one request than the table says.

    *added* is what one instance adds to the columns of its host.  Only what follows from columns
    and documents can be asked; for all else NeedsTable is raised.
    """

    def __init__(
        self, hosts: Candidates, added: Mapping[str, int], times: np.ndarray | int
    ) -> None:
        super().__init__(hosts.scope, hosts.rows)
        self._added = added
        self._times = times

    def __getattr__(self, name: str) -> np.ndarray:
        found = super().__getattr__(name)
        if name in self._added:
            found = self.__dict__[name] = found + self._added[name] * self._times
        return found

    @property
    def table(self) -> NoReturn:
        raise NeedsTable

    def take(self, chosen: np.ndarray) -> Candidates:
        return _Ahead(super().take(chosen), self._added, some(self._times, chosen))

    def states(self) -> NoReturn:
        raise NeedsTable


class Batch:
    """Chooses the rows of several instances of one request, in order.

    ``_hosts`` are those that passed after the first choice, with their weights as instances are
    added; arrays are by place among them.
    """

    def __init__(
        self, policy: Policy, evaluation: Evaluation, request: Any, amount: Consumption, first: int
    ) -> None:
        """*evaluation* and row *first* are of the first instance; *amount* is what each one takes.

        Raises NeedsTable where a filter or weigher looks at more than columns.
        """
        self.amount = amount
        #: True when weight alone decided.
        self.is_forced = True
        self.rows = [first]
        self._policy = policy
        self._request = request
        hosts, parts = evaluation.hosts, evaluation.parts
        times = (hosts.rows == first).astype(np.int64)
        passing, raws = self._level(hosts, times)
        places = np.flatnonzero(passing)
        self._hosts = hosts.take(places)
        self._times = times[places]
        #: The latest choice of each place, -1 without any.
        self._chosen_at = self._times - 1
        self._factors = [some(part.multiplier, places) for part in parts]
        self._raws = [np.array(raw[places], dtype=np.float64) for raw in raws]
        self._alive = len(places)
        self._gone = np.zeros(len(places), dtype=np.bool_)
        #: Weighers whose extremes have changed.
        self._moved: set[int] = set()
        self._levels: dict[int, tuple[Any, list[np.ndarray]]] = {}
        #: Bounds, each with the number of the first choice that was made with them.
        self._history: list[tuple[int, Sequence[Bounds]]] = [(0, [each.bounds for each in parts])]

    @property
    def survivors(self) -> Candidates:
        """The hosts that passed the last time they were looked at."""
        return Candidates(self._hosts.scope, self._hosts.rows[~self._gone])

    def choose(self, count: int, check: Callable[[int], None]) -> None:
        """Choose up to *count* rows in all; *check* is called with the number of each next one."""
        if not self._alive:
            return
        numbers = range(len(self._raws))
        self._extremes = [extremes(raw) for raw in self._raws]
        self._bounds = [(0.0, 0.0)] * len(self._raws)
        self._bounds = self._bounds_now(numbers)
        self._parts = [self._part(number) for number in numbers]
        self._totals = self._sum()
        for number in range(1, count):
            check(number)
            if not self._alive:
                return
            best = self._best()
            if self._history[-1][1] is not self._bounds:
                self._history.append((number, self._bounds))
            self._chosen_at[best] = number
            self._times[best] += 1
            self.rows.append(self._hosts.rows.item(best))
            if number + 1 < count:
                self._follow(best)

    def first_of(self, rows: np.ndarray) -> int:
        """The one of *rows*, in the table's order, that stood first; the table has it by now."""
        places = np.flatnonzero(np.isin(self._hosts.rows, rows))
        now = Candidates(self._hosts.scope, self._hosts.rows[places])
        raws = [each.raw(now, self._request) for each in self._policy.weighers]
        return int(self._hosts.rows[places[self._first(raws, places)]])

    def _level(self, hosts: Candidates, times: np.ndarray | int) -> tuple[Any, list[np.ndarray]]:
        """Mask of the *hosts* that pass with so many more instances, and their raw values."""
        ahead = _Ahead(hosts, self.amount.added, times)
        passing = self._policy.chain.passing(ahead, self._request)
        return passing, [each.raw(ahead, self._request) for each in self._policy.weighers]

    # --- among equals --------------------------------------------------------------------

    def _first(self, raws: list[np.ndarray], places: np.ndarray) -> int:
        """The one of the equal hosts at *places* that stood first before."""
        if not self._policy.semantics.keeps_ranking:
            return 0
        if all((raw == raw[0]).all() for raw in raws):  # so they were since one was chosen
            latest = self._chosen_at[places]
            return int(latest.argmax()) if latest.max() >= 0 else 0
        return self._first_by_bounds(places)

    def _first_by_bounds(self, places: np.ndarray) -> int:
        """The one that stood first in the latest ranking that tells them apart.

        With the same bounds a ranking differs from the one before by the chosen host alone, which
        then is the first among its equals.
        """
        left, last = np.arange(len(places)), len(self.rows) - 1
        times, chosen_at = self._times[places], self._chosen_at[places]
        for first, bounds in reversed(self._history):
            if (latest := chosen_at[left]).max() == last:
                return int(left[latest.argmax()])
            _passing, raws = self._level(self._hosts.take(places[left]), times[left])
            totals = np.zeros(len(left))
            for raw, ends, factor in zip(raws, bounds, self._factors, strict=True):
                totals += weighted(raw, ends, some(factor, places[left]), extremes(raw))
            left = left[totals == totals.max()]
            latest = chosen_at[left]
            if len(left) == 1 or latest.max() >= first:
                return int(left[latest.argmax()])
            last = first - 1
        return int(left[0])

    # --- weights as instances are added --------------------------------------------------

    def _bounds_now(self, numbers: Iterable[int]) -> list[Bounds]:
        """The bounds, where those of the weighers *numbers* may be others than before."""
        if self._alive == 1:  # a single host is not weighed
            return [(0.0, 0.0)] * len(self._raws)
        bounds, policy = list(self._bounds), self._policy
        for number in numbers:
            ends = self._extremes[number]
            bounds[number] = bounds_for(policy.weighers[number], ends, policy.semantics)
        return bounds

    def _part(self, number: int) -> np.ndarray | None:
        """The share of weigher *number* of the totals; None where it adds nothing."""
        factor, (low, high) = self._factors[number], self._bounds[number]
        if low == high or _is_zero(factor):
            return None
        return weighted(self._raws[number], (low, high), factor, self._extremes[number])

    def _sum(self) -> np.ndarray:
        totals = np.zeros(len(self._gone))
        for part in self._parts:
            if part is not None:
                totals += part
        totals[self._gone] = -np.inf
        return totals

    def _best(self) -> int:
        totals = self._totals
        best = int(totals.argmax())
        highest = totals.item(best)
        rest = totals[best + 1 :]
        if len(rest) and rest.max() == highest:
            self.is_forced = False
            equals = np.flatnonzero(totals == highest)
            ends = zip(self._raws, self._extremes, strict=True)
            differing = [raw[equals] for raw, (low, high) in ends if low != high]
            best = int(equals[self._first(differing, equals)])
        return best

    def _follow(self, last: int) -> None:
        """Take in that the host at *last* was chosen."""
        times = int(self._times[last])
        if times not in self._levels:
            self._levels[times] = self._level(self._hosts, times)
        passing, raws = self._levels[times]
        if passing[last]:
            changed = self._change(last, [raw.item(last) for raw in raws])
        else:
            changed = self._drop(last)
        before = self._bounds
        if self._moved or self._alive == 1:
            self._bounds = self._bounds_now(self._moved)
            self._moved.clear()
        self._update(last, changed, before)

    def _change(self, place: int, values: list[float]) -> list[int]:
        """Give the host at *place* new raw *values*; the weighers for which that is a change."""
        changed = []
        for number, value in enumerate(values):
            raw = self._raws[number]
            old = raw.item(place)
            if old == value:
                continue
            changed.append(number)
            raw[place] = value
            low, high = self._extremes[number]
            if not (low < old < high and low <= value <= high):
                self._set_ends(number)
        return changed

    def _drop(self, place: int) -> list[int]:
        """Leave out the host at *place*, which is full."""
        self._gone[place] = True
        self._totals[place] = -np.inf
        self._alive -= 1
        for number, raw in enumerate(self._raws):
            low, high = self._extremes[number]
            old, raw[place] = raw.item(place), np.nan
            if self._alive and not low < old < high:
                self._set_ends(number)
        return []

    def _set_ends(self, number: int) -> None:
        raw = self._raws[number]
        ends = float(np.fmin.reduce(raw)), float(np.fmax.reduce(raw))
        if ends != self._extremes[number]:
            self._extremes[number] = ends
            self._moved.add(number)

    def _update(self, last: int, changed: list[int], before: list[Bounds]) -> None:
        """Weigh anew what has *changed*: all hosts where bounds are not those from *before*."""
        moved = []
        if self._bounds is not before:
            moved = [n for n, bounds in enumerate(self._bounds) if bounds != before[n]]
        for number in moved:
            self._parts[number] = self._part(number)
        if any(not _is_zero(self._factors[number]) for number in moved):
            self._totals = self._sum()
        if self._gone[last] or not changed:
            return
        for number in changed:
            part, (low, high) = self._parts[number], self._bounds[number]
            if part is not None and number not in moved:
                value = min(max(self._raws[number].item(last), low), high)
                factor = self._factors[number]
                if isinstance(factor, np.ndarray):
                    factor = factor.item(last)
                part[last] = share(value, low, high, factor)
        total = 0.0
        for part in self._parts:
            if part is not None:
                total += part.item(last)
        self._totals[last] = total


def _is_zero(factor: np.ndarray | float) -> bool:
    return not isinstance(factor, np.ndarray) and factor == 0
