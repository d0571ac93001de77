"""Several instances at once, before the table has any of them.

Filters and weighers are asked once per level: all hosts as if they had *k* servers of this
request, which is columns plus *k* times the flavor.  1,000 servers on 10,000 hosts take some 35 ms
so; asked one by one they take 600.
"""

import math
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
    """No lookahead: a filter or weigher looks at more than columns."""


class _Lookahead(Candidates):
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
        return _Lookahead(super().take(chosen), self._added, some(self._times, chosen))

    def states(self) -> NoReturn:
        raise NeedsTable


class Batch:
    """Choice of the rows of several instances of one request, in order.

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
        self.by_weight_alone = True
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
        self._alive = len(places)
        self._gone = np.zeros(len(places), dtype=np.bool_)
        self._totals = np.zeros(len(places))
        pairs = zip(parts, raws, strict=True) if self._alive else ()
        self._shares = [_Share(raw[places], some(part.multiplier, places)) for part, raw in pairs]
        self._bounds: list[Bounds] = [(0.0, 0.0)] * len(self._shares)
        self._levels: dict[int, tuple[Any, list[np.ndarray]]] = {}
        #: Bounds, each with the number of the first choice that was made with them.
        self._history: list[tuple[int, Sequence[Bounds]]] = [(0, [each.bounds for each in parts])]

    @property
    def survivors(self) -> Candidates:
        """The hosts that passed the last time they were looked at."""
        return Candidates(self._hosts.scope, self._hosts.rows[~self._gone])

    def choose(self, count: int, check: Callable[[int], None]) -> None:
        """Choose up to *count* rows in all; *check* is called with the number of each next one."""
        self._weigh(range(len(self._shares)))
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
        lookahead = _Lookahead(hosts, self.amount.added, times)
        passing = self._policy.chain.passing(lookahead, self._request)
        return passing, [each.raw(lookahead, self._request) for each in self._policy.weighers]

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
            for raw, ends, each in zip(raws, bounds, self._shares, strict=True):
                totals += weighted(raw, ends, some(each.factor, places[left]), extremes(raw))
            left = left[totals == totals.max()]
            latest = chosen_at[left]
            if len(left) == 1 or latest.max() >= first:
                return int(left[latest.argmax()])
            last = first - 1
        return int(left[0])

    def _weigh(self, numbers: Iterable[int]) -> None:
        """Weigh anew, as the ends of the weighers *numbers* may be others than before."""
        bounds, policy = list(self._bounds), self._policy
        if self._alive == 1:  # a single host is not weighed
            numbers, bounds = (), [(0.0, 0.0)] * len(bounds)
        for number in numbers:
            ends = self._shares[number].ends
            bounds[number] = bounds_for(policy.weighers[number], ends, policy.semantics)
        pairs = zip(self._shares, bounds, strict=True)
        moved = [each.weigh(new) for each, new in pairs if each.bounds != new]
        self._bounds = bounds
        if any(moved):
            self._totals = np.zeros(len(self._gone))
            for each in self._shares:
                if each.part is not None:
                    self._totals += each.part
            self._totals[self._gone] = -np.inf

    def _best(self) -> int:
        best = int(self._totals.argmax())
        highest = self._totals.item(best)
        if self._totals[best + 1 :].max(initial=-np.inf) < highest:
            return best
        self.by_weight_alone = False
        equals = np.flatnonzero(self._totals == highest)
        differing = [each.raw[equals] for each in self._shares if each.ends[0] != each.ends[1]]
        return int(equals[self._first(differing, equals)])

    def _follow(self, last: int) -> None:
        """Take in that the host at *last* was chosen; it may be full."""
        times = int(self._times[last])
        if times not in self._levels:
            self._levels[times] = self._level(self._hosts, times)
        passing, raws = self._levels[times]
        is_full = not passing[last]
        if is_full:
            self._gone[last] = True
            self._totals[last] = -np.inf
            self._alive -= 1
            if not self._alive:
                return
        values = [math.nan if is_full else raw.item(last) for raw in raws]
        moved = [n for n, value in enumerate(values) if self._shares[n].put(last, value)]
        if moved or self._alive == 1:
            self._weigh(moved)
        if not is_full:
            total = 0.0
            for each in self._shares:
                if each.part is not None:
                    total += each.part.item(last)
            self._totals[last] = total


class _Share:
    """One weigher's numbers for all hosts, of which single ones change."""

    def __init__(self, raw: np.ndarray, factor: np.ndarray | float) -> None:
        self.raw = np.array(raw, dtype=np.float64)
        self.factor = factor
        self.ends = extremes(self.raw)
        self.bounds: Bounds = (0.0, 0.0)
        #: Its share of the totals; None where it adds nothing.
        self.part: np.ndarray | None = None

    def weigh(self, bounds: Bounds) -> bool:
        """Put the raw values between other *bounds*; False if that changes no total."""
        before, self.part, self.bounds = self.part, None, bounds
        is_zero = not isinstance(self.factor, np.ndarray) and self.factor == 0
        if bounds[0] != bounds[1] and not is_zero:
            self.part = weighted(self.raw, bounds, self.factor, self.ends)
        return before is not None or self.part is not None

    def put(self, place: int, value: float) -> bool:
        """Give one host another raw *value*, NaN to a full one; True if that moves the ends."""
        old = self.raw.item(place)
        if old == value:
            return False
        self.raw[place] = value
        if self.part is not None:
            low, high = self.bounds
            factor = self.factor.item(place) if isinstance(self.factor, np.ndarray) else self.factor
            self.part[place] = share(min(max(value, low), high), low, high, factor)
        low, high = self.ends
        if low < old < high and not (value < low or value > high):
            return False
        self.ends = float(np.fmin.reduce(self.raw)), float(np.fmax.reduce(self.raw))
        return self.ends != (low, high)
