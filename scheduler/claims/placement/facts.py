"""Facts about providers that are alone in their trees: a column per fact, a place per provider."""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

#: Kinds of facts: how much is free of each resource class; 1 for each trait, and aggregate.
FREE, TRAIT, AGGREGATE = "free", "trait", "aggregate"
#: The times that the facts of each kind are of; 0 where none are known.
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
        """The place of *node* in every mask."""
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

    def refused(self, needs: Iterable[Need], since: float) -> np.ndarray:
        """Mask of those that do not meet all *needs*, by facts later than *since*."""
        with self._lock:
            mask = np.zeros(self.size, dtype=np.bool_)
            for need in needs:
                is_unmet = (self._sum(need) < need.least) != need.is_ban
                mask |= is_unmet & (self._column(_AT, need.kind) > since)
            return mask

    def reasons(self, node: str, needs: Iterable[Need]) -> list[str]:
        """The texts of the *needs* that *node* does not meet, by its latest facts."""
        place = self.place_of(node)
        with self._lock:
            sums = [(need, self._sum(need)[place]) for need in needs]
        return [e.text.format(found) for e, found in sums if (found < e.least) != e.is_ban]

    def _sum(self, need: Need) -> np.ndarray:
        return sum((self._column(need.kind, each) for each in need.names), np.zeros(self.size))

    def _column(self, kind: str, name: str) -> np.ndarray:
        return self._columns.get((kind, name), np.zeros(self.size))
