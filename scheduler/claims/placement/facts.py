"""Facts about trees of providers: a column per fact, a place per root."""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

#: Kinds of facts: how much is free of each resource class in the tree; 1 for each trait, and
#: aggregate, of providers that are alone in theirs.
FREE, TRAIT, AGGREGATE = "free", "trait", "aggregate"
#: The times that the facts of each kind are of, and those of one name; 0 where none are known.
_AT: Final = "at"


@dataclass(frozen=True, slots=True)
class Need:
    """Condition for the sum of some facts: at least *least*; for a ban less than that.

    *text* says what is wrong where it is not met, and may show the sum.
    """

    kind: str
    names: Collection[str]
    text: str
    least: float = 1
    is_ban: bool = False


class Facts:
    """State of providers; answers questions about all of them at once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        #: Length of the masks: there are fewer places.
        self.size = 1024
        self._columns: dict[tuple[str, str], np.ndarray] = {}
        self._lock = threading.Lock()

    def place_of(self, node: str) -> int:
        with self._lock:
            place = self._places.setdefault(node, len(self._places))
            if place == self.size:
                more = np.zeros(self.size)
                self._columns = {key: np.append(old, more) for key, old in self._columns.items()}
                self.size *= 2
            return place

    def learn(self, kind: str, at: float, facts: Mapping[str, Mapping[str, float]]) -> None:
        """Take, per node, *facts* for all of this *kind* at that time."""
        columns: dict[str, dict[int, float]] = {}
        places = {self.place_of(node): found for node, found in facts.items()}
        for place, found in places.items():
            for name, value in found.items():
                columns.setdefault(name, {})[place] = value
        with self._lock:
            for (other, _name), column in self._columns.items():
                if other == kind:
                    column[[*places]] = 0
            for key, values in [((_AT, kind), dict.fromkeys(places, at))] + [
                ((kind, name), values) for name, values in columns.items()
            ]:
                column = self._columns[key] = self._column(*key)
                column[[*values]] = [*values.values()]

    def take(self, node: str, amounts: Mapping[str, float]) -> None:
        place = self.place_of(node)
        with self._lock:
            for name, amount in amounts.items():
                self._column(FREE, name)[place] -= amount

    def learn_one(self, kind: str, name: str, at: float, facts: Mapping[str, float]) -> None:
        """Take, per node, one fact at that time."""
        places = [*map(self.place_of, facts)]
        with self._lock:
            for key, values in ((kind, name), [*facts.values()]), ((_AT, f"{kind} {name}"), at):
                column = self._columns[key] = self._column(*key)
                column[places] = values

    def refused(self, needs: Iterable[Need], since: float) -> np.ndarray:
        """Mask of those that do not meet all *needs*, by facts later than *since*."""
        with self._lock:
            mask = np.zeros(self.size, dtype=np.bool_)
            for need in needs:
                is_unmet = (self._sum(need) < need.least) != need.is_ban
                mask |= is_unmet & (self._time(need) > since)
            return mask

    def unmet(self, node: str, needs: Iterable[Need], since: float) -> list[tuple[Need, float]]:
        """The *needs* that *node* does not meet, with their sums, by facts later than *since*."""
        place = self.place_of(node)
        with self._lock:
            known = [each for each in needs if self._time(each)[place] > since]
            sums = [(each, float(self._sum(each)[place])) for each in known]
        return [(each, found) for each, found in sums if (found < each.least) != each.is_ban]

    def _time(self, need: Need) -> np.ndarray:
        of_kind = self._column(_AT, need.kind)
        if len(need.names) != 1:
            return of_kind
        (name,) = need.names
        of_name = self._columns.get((_AT, f"{need.kind} {name}"))
        return of_kind if of_name is None else np.maximum(of_kind, of_name)

    def _sum(self, need: Need) -> np.ndarray:
        return sum((self._column(need.kind, each) for each in need.names), np.zeros(self.size))

    def _column(self, kind: str, name: str) -> np.ndarray:
        return self._columns.get((kind, name), np.zeros(self.size))
