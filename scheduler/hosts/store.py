"""Rows of columns, documents and objects, without a notion of what a row stands for."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from oslo_log import log as logging

from scheduler import errors
from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER
from scheduler.hosts.documents import Combinations, DocumentPool

LOG = logging.getLogger(__name__)

FIRST_CAPACITY = 64
_NODES_NAMED = 10


class ColumnStore:
    """One array per numeric column, one of numbers per document, one list per object column.

    ``version`` counts the changes but for heartbeats; by row, ``changed_at`` is the version of its
    last change and ``given_at`` that of its last new host.
    """

    def __init__(self) -> None:
        self.pools = {
            name: DocumentPool(parse, functools.partial(self._complain, name))
            for name, parse in columns.DOCUMENT_PARSERS.items()
        }
        self.version = 0
        self.changed_at = np.zeros(0, dtype=np.int64)
        self.given_at = np.zeros(0, dtype=np.int64)
        #: One more than the highest row number there may be.
        self.capacity = 0
        self._combinations: dict[tuple[str, ...], Combinations] = {}
        self._free: list[int] = []
        self._used = 0
        self._columns: dict[str, np.ndarray] = {
            name: np.zeros(0, dtype=kind) for name, kind in columns.COLUMN_TYPES.items()
        }
        self._documents = dict.fromkeys(columns.DOCUMENT_PARSERS, np.zeros(0, dtype=np.int64))
        self._read_only: dict[str, np.ndarray] = {}
        self._objects: dict[str, list[Any]] = {name: [] for name in columns.OBJECT_COLUMNS}
        self._grow(FIRST_CAPACITY)

    def copy(self) -> Self:
        """A store of the same content that changes on its own.

        A copy does not complain of documents that cannot be read: this store does.
        """
        twin = copy.copy(self)
        twin.pools = {name: pool.copy() for name, pool in self.pools.items()}
        twin._combinations = {}
        twin.changed_at, twin.given_at = self.changed_at.copy(), self.given_at.copy()
        twin._free = list(self._free)
        twin._columns = {name: array.copy() for name, array in self._columns.items()}
        twin._documents = {name: array.copy() for name, array in self._documents.items()}
        twin._objects = {name: list(values) for name, values in self._objects.items()}
        twin._show_read_only()
        return twin

    # --- reading -------------------------------------------------------------------------

    def column(self, name: str) -> np.ndarray:
        """The whole array of a numeric column, indexed by row number; read-only."""
        return self._read_only[name]

    def document_numbers(self, name: str) -> np.ndarray:
        """Per row the number of its document in ``pools[name]``; read-only."""
        return self._read_only[name]

    def value(self, row: int, name: str) -> Any:
        """One row's value of a numeric, document (parsed) or object column."""
        if name in self._documents:
            return self.pools[name].parsed(int(self._documents[name][row]))
        return self._plain_value(row, name)

    def text(self, row: int, name: str) -> Any:
        """One row's value of an object column."""
        return self._objects[name][row]

    def content(self, row: int, name: str) -> Any:
        """One row's document as it was stored."""
        return self.pools[name].content(int(self._documents[name][row]))

    def combinations(self, names: tuple[str, ...]) -> tuple[DocumentPool, np.ndarray]:
        """Pool and per row number of the distinct combinations of the values *names*.

        Of documents a combination holds the number.  They are kept up from the first time on.
        """
        known = self._combinations.get(names)
        if known is None:
            known = self._combinations[names] = Combinations(
                lambda row: tuple([self._plain_value(row, name) for name in names])
            )
        if known.stale or len(known.numbers) < self.capacity:
            known.refresh(self.capacity)
        return known.pool, known.numbers

    def _plain_value(self, row: int, name: str) -> Any:
        if name in self._objects:
            return self._objects[name][row]
        return self._read_only[name].item(row)

    def parsed_values(self, names: Sequence[str], combination: Sequence[Any]) -> tuple[Any, ...]:
        """The values *names* of a combination, documents parsed."""
        return tuple(
            self.pools[name].parsed(value) if name in self.pools else value
            for name, value in zip(names, combination, strict=True)
        )

    # --- changing ------------------------------------------------------------------------

    def update(self, row: int, values: Mapping[str, Any]) -> None:
        """Set column, document content and object *values* of one row; its identity stays."""
        changed = []
        for name, value in values.items():
            if name in self._documents:
                if self._replace(row, name, value):
                    changed.append(name)
                continue
            kept: Any = self._columns[name] if name in self._columns else self._objects[name]
            if kept[row] != value:
                kept[row] = value
                changed.append(name)
        if changed:
            self._note((row,), changed)

    def add(self, row: int, amounts: Mapping[str, int]) -> None:
        """Add to the numbers of one row; negative *amounts* take away."""
        for name, amount in amounts.items():
            self._columns[name][row] += amount
        self._note((row,), amounts)

    def add_many(self, times: Mapping[int, int], amounts: Mapping[str, int]) -> None:
        """Add to the numbers of some rows, by row so many times."""
        rows = list(times)
        factors = np.fromiter(times.values(), dtype=np.int64, count=len(rows))
        for name, amount in amounts.items():
            self._columns[name][rows] += amount * factors
        self._note(rows, amounts)

    def _note(self, rows: Sequence[int], names: Iterable[str] | None = None) -> None:
        """The values *names* of *rows* have changed; None: any may have."""
        self.version += 1
        self.changed_at[rows[0] if len(rows) == 1 else rows] = self.version
        for combined, known in self._combinations.items():
            if names is None or any(name in combined for name in names):
                known.stale.update(rows)

    def _replace(self, row: int, name: str, content: Any) -> bool:
        """Replace the document; true when it is another one now."""
        numbers, pool = self._documents[name], self.pools[name]
        new, old = pool.acquire(content), int(numbers[row])
        numbers[row] = new
        if old >= 0:
            pool.release(old)
        return new != old

    # --- rows come and go ----------------------------------------------------------------

    def _new_row(self, most_free: int) -> int:
        """A row of zeros and empty documents; a free one where there are more than *most_free*."""
        if len(self._free) > most_free:
            row = self._free.pop()
        else:
            if self._used == self.capacity:
                self._grow(self.capacity * 2)
            row, self._used = self._used, self._used + 1
        for name, values in self._columns.items():
            values[row] = NEVER if name in ("updated_at", "service_last_seen") else 0
        for name in self._documents:
            self._replace(row, name, None)
        return row

    def _free_row(self, row: int) -> None:
        """Empty *row*, which may be given out again."""
        for name, numbers in self._documents.items():
            if numbers[row] >= 0:
                self.pools[name].release(int(numbers[row]))
                numbers[row] = -1
        for values in self._objects.values():
            values[row] = None
        self._free.append(row)

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        for arrays, filling in ((self._columns, 0), (self._documents, -1)):
            for name, old in arrays.items():
                arrays[name] = np.append(old, np.full(more, filling, dtype=old.dtype))
        for values in self._objects.values():
            values.extend([None] * more)
        self.changed_at = np.append(self.changed_at, np.zeros(more, dtype=np.int64))
        self.given_at = np.append(self.given_at, np.zeros(more, dtype=np.int64))
        self.capacity = capacity
        self._show_read_only()

    def _show_read_only(self) -> None:
        arrays = {**self._columns, **self._documents}
        self._read_only = {name: array.view() for name, array in arrays.items()}
        for view in self._read_only.values():
            view.flags.writeable = False

    def _complain(self, name: str, number: int, error: errors.NovaException) -> None:
        rows = np.flatnonzero(self._documents[name] == number)[:_NODES_NAMED].tolist()
        nodes = ", ".join(str(self._objects["nodename"][row]) for row in rows)
        LOG.warning(
            "%s of compute node %s cannot be read and counts as none: %s", name, nodes, error
        )
