"""What changed in a table of rows, and which columns of each row.

Whoever keeps something worked out from the table remembers the position up to which it has taken
the changes in, and asks for those since.
"""

from __future__ import annotations

from collections.abc import Sequence

#: How many of the latest changes are kept at least.
KEPT = 16384


class Journal:
    """The latest changes in the order in which they happened.

    Columns are sets of bits (``columns.BITS``).  ``position`` counts all changes there ever were.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.position = 0
        self._kept = kept
        self._rows: list[int] = []
        self._columns: list[int] = []

    def note(self, row: int, columns: int) -> None:
        """The *columns* of *row* have changed."""
        self._rows.append(row)
        self._columns.append(columns)
        self.position += 1
        if len(self._rows) >= 2 * self._kept:
            del self._rows[: self._kept], self._columns[: self._kept]

    def note_all(self, rows: Sequence[int], columns: int) -> None:
        """The same *columns* of all *rows* have changed."""
        self._rows += rows
        self._columns += [columns] * len(rows)
        self.position += len(rows)
        if len(self._rows) >= 2 * self._kept:
            surplus = len(self._rows) - self._kept
            del self._rows[:surplus], self._columns[:surplus]

    def since(self, position: int, interest: int) -> dict[int, int] | None:
        """By row the columns, of those of *interest*, that changed after *position*.

        None when that is too long ago to be known.
        """
        begin = len(self._rows) - (self.position - position)
        if begin < 0:
            return None
        found: dict[int, int] = {}
        for row, columns in zip(self._rows[begin:], self._columns[begin:], strict=True):
            if changed := columns & interest:
                found[row] = found.get(row, 0) | changed
        return found
