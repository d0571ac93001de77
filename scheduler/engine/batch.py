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
    """Chooses the rows of *count* instances of one request, in order."""

    def __init__(
        self, policy: Policy, evaluation: Evaluation, request: Any, amount: Consumption
    ) -> None:
        """*evaluation* is that of the first instance; *amount* is what each one takes."""
        self.amount = amount
        #: True when weight alone decided.
        self.is_forced = True
        self._policy = policy
        self._semantics = policy.semantics
        self._hosts = hosts = evaluation.hosts
        self._request = request
        self._factors = [part.multiplier for part in evaluation.parts]
        #: By place among the hosts.
        self._times = np.zeros(len(hosts), dtype=np.int64)
        self._picked_at = np.full(len(hosts), -1)
        self._passing = hosts.everything(True)
        self._picks: list[int] = []
        #: Bounds, each with the first of the picks that were made with them.
        self._bounds: list[tuple[int, Sequence[Bounds]]] = [
            (0, [part.bounds for part in evaluation.parts])
        ]

    @property
    def rows(self) -> list[int]:
        found: list[int] = self._hosts.rows[self._picks].tolist()
        return found

    @property
    def survivors(self) -> Candidates:
        """The hosts that passed the last time they were looked at."""
        return Candidates(self._hosts.scope, self._hosts.rows[self._passing])

    def choose(self, first: int, count: int, check: Callable[[int], None]) -> None:
        """Choose rows while there are any, the one of the *first* instance given.

        *check* is called with the number of each next instance.  Raises NeedsTable where a filter
        or weigher looks at more than columns.
        """
        self._pick(int((self._hosts.rows == first).argmax()))
        passing, raws = self._level(self._hosts, self._times)
        self._passing &= passing
        places = np.flatnonzero(self._passing)
        if not len(places):
            return
        at_hand = _AtHand(self, places, [raw[places] for raw in raws])
        for number in range(1, count):
            check(number)
            best = at_hand.best()
            if best is None:
                return
            if self._bounds[-1][1] is not at_hand.bounds:
                self._bounds.append((number, at_hand.bounds))
            self._pick(int(places[best]))
            if number + 1 < count:
                at_hand.follow()

    def first_of(self, rows: np.ndarray) -> int:
        """The one of *rows*, in the table's order, that stood first; the table has it by now."""
        places = np.flatnonzero(np.isin(self._hosts.rows, rows))
        now = Candidates(self._hosts.scope, self._hosts.rows[places])
        raws = [each.raw(now, self._request) for each in self._policy.weighers]
        return int(self._hosts.rows[places[self._first(raws, places)]])

    def _pick(self, place: int) -> None:
        self._picked_at[place] = len(self._picks)
        self._times[place] += 1
        self._picks.append(place)

    def _level(self, hosts: Candidates, times: np.ndarray | int) -> tuple[Any, list[np.ndarray]]:
        """Mask of the *hosts* that pass with so many more instances, and their raw values."""
        ahead = _Ahead(hosts, self.amount.added, times)
        passing = self._policy.chain.passing(ahead, self._request)
        return passing, [each.raw(ahead, self._request) for each in self._policy.weighers]

    # --- among equals --------------------------------------------------------------------

    def _first(self, raws: list[np.ndarray], places: np.ndarray) -> int:
        """The one of the equal hosts at *places* that stood first before."""
        if not self._semantics.keeps_ranking:
            return 0
        if all((raw == raw[0]).all() for raw in raws):  # so they were since the last pick of one
            latest = self._picked_at[places]
            return int(latest.argmax()) if latest.max() >= 0 else 0
        return self._first_by_bounds(places)

    def _first_by_bounds(self, places: np.ndarray) -> int:
        """The one that stood first in the latest ranking that tells them apart.

        With the same bounds a ranking differs from the one before by the picked host alone, which
        then is the first among its equals.
        """
        left, last = np.arange(len(places)), len(self._picks) - 1
        times, picked_at = self._times[places], self._picked_at[places]
        for first, bounds in reversed(self._bounds):
            if (latest := picked_at[left]).max() == last:
                return int(left[latest.argmax()])
            _passing, raws = self._level(self._hosts.take(places[left]), times[left])
            totals = np.zeros(len(left))
            for raw, ends, factor in zip(raws, bounds, self._factors, strict=True):
                totals += weighted(raw, ends, some(factor, places[left]), extremes(raw))
            left = left[totals == totals.max()]
            latest = picked_at[left]
            if len(left) == 1 or latest.max() >= first:
                return int(left[latest.argmax()])
            last = first - 1
        return int(left[0])


class _AtHand:
    """The hosts that may be picked next, with their weights as instances are added."""

    def __init__(self, batch: Batch, places: np.ndarray, raws: list[np.ndarray]) -> None:
        """All hosts at *places*, with their *raws* as of now."""
        self._batch = batch
        self._weighers = batch._policy.weighers
        self.places = places
        self._hosts = batch._hosts
        self._times = batch._times[places]
        self._factors = [some(factor, places) for factor in batch._factors]
        self._raws = [np.array(raw, dtype=np.float64) for raw in raws]
        self._extremes = [extremes(raw) for raw in raws]
        self._alive = len(places)
        self._gone = np.zeros(len(places), dtype=np.bool_)
        #: Weighers whose extremes have changed.
        self._moved: set[int] = set()
        self.bounds: list[Bounds] = [(0.0, 0.0)] * len(raws)
        self.bounds = self._bounds_now(range(len(raws)))
        self._parts = [self._part(number) for number in range(len(raws))]
        self._totals = self._sum()
        self._levels: dict[int, tuple[Any, list[np.ndarray]]] = {}
        self._last = -1

    def _bounds_now(self, numbers: Iterable[int]) -> list[Bounds]:
        """The bounds, where those of the weighers *numbers* may be others than before."""
        if self._alive == 1:  # a single host is not weighed
            return [(0.0, 0.0)] * len(self._raws)
        bounds = list(self.bounds)
        for number in numbers:
            ends = self._extremes[number]
            bounds[number] = bounds_for(self._weighers[number], ends, self._batch._semantics)
        return bounds

    def _part(self, number: int) -> np.ndarray | None:
        """The share of weigher *number* of the totals; None where it adds nothing."""
        factor, (low, high) = self._factors[number], self.bounds[number]
        if low == high or _is_zero(factor):
            return None
        return weighted(self._raws[number], (low, high), factor, self._extremes[number])

    def _sum(self) -> np.ndarray:
        totals = np.zeros(len(self.places))
        for part in self._parts:
            if part is not None:
                totals += part
        totals[self._gone] = -np.inf
        return totals

    def best(self) -> int | None:
        """The place at hand of the best; None if there is none."""
        totals = self._totals
        if not self._alive:
            return None
        best = int(totals.argmax())
        highest = totals.item(best)
        rest = totals[best + 1 :]
        if len(rest) and rest.max() == highest:
            self._batch.is_forced = False
            equals = np.flatnonzero(totals == highest)
            raws = [raw[equals] for raw in self._raws]
            best = int(equals[self._batch._first(raws, self.places[equals])])
        self._last = best
        return best

    def follow(self) -> None:
        """Take in the last pick."""
        last = self._last
        self._times[last] += 1
        times = int(self._times[last])
        if times not in self._levels:
            self._levels[times] = self._batch._level(self._hosts.take(self.places), times)
        passing, raws = self._levels[times]
        if passing[last]:
            changed = self._change(last, [raw.item(last) for raw in raws])
        else:
            changed = self._drop(last)
        before = self.bounds
        if self._moved or self._alive == 1:
            self.bounds = self._bounds_now(self._moved)
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
        self._batch._passing[self.places[place]] = False
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
        if self.bounds is not before:
            moved = [n for n, bounds in enumerate(self.bounds) if bounds != before[n]]
        for number in moved:
            self._parts[number] = self._part(number)
        if any(not _is_zero(self._factors[number]) for number in moved):
            self._totals = self._sum()
        if self._gone[last] or not changed:
            return
        for number in changed:
            part, (low, high) = self._parts[number], self.bounds[number]
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
