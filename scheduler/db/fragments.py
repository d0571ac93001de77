"""What looks at the database are put together from, as each engine says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

_EPOCH_IN_SECONDS_OF_MYSQL = 62167219200
_SPREAD = 1021
#: Ids times these, which are below 2^31, are 64 bits at most.
_FACTORS = (1481765933, 1640531527)
_ABSENT = "~"


class Fragments:
    """What each engine calls the functions needed here."""

    def __init__(self, dialect_name: str) -> None:
        self.name = dialect_name

    def second(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        """Whole seconds since the epoch of a timestamp."""
        if self.name == "mysql":
            return sa.func.to_seconds(column) - _EPOCH_IN_SECONDS_OF_MYSQL
        if self.name == "sqlite":
            return sa.cast(sa.func.strftime("%s", column), sa.BigInteger)
        return sa.cast(sa.func.floor(sa.extract("epoch", column)), sa.BigInteger)

    def grouping(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """What rows of one second have in common.  MySQL keeps no fractions, and has an index."""
        return column if self.name == "mysql" else self.second(column)

    def text(self, part: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """*part* where a text is needed."""
        return part if self.name == "mysql" else sa.cast(part, sa.Text)

    def text_or(self, part: sa.ColumnElement[Any], absent: str) -> sa.ColumnElement[Any]:
        """*part* as a text, *absent* if it is NULL."""
        return sa.func.coalesce(self.text(part), sa.literal(absent, sa.Text()))

    def joined(self, *parts: sa.ColumnElement[Any], separator: str = ":") -> sa.ColumnElement[str]:
        """The *parts* as one text with colons, or another *separator*, between them."""
        texts = [self.text(part) for part in parts]
        if self.name != "sqlite":
            return sa.func.concat_ws(separator, *texts)
        text = texts[0]
        for each in texts[1:]:
            text = text + separator + each
        return text

    def largest(self, *parts: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The largest of several numbers, none of which is NULL."""
        return sa.func.max(*parts) if self.name == "sqlite" else sa.func.greatest(*parts)

    def checksums(self, row_id: sa.ColumnElement[int]) -> list[sa.ColumnElement[Any]]:
        """Two numbers that differ for different sets of ids; see :meth:`count`.

        MySQL adds numbers up as decimals, which takes it half as long again.
        """
        if self.name == "mysql":
            return [sa.func.bit_xor(row_id * sa.literal_column(str(each))) for each in _FACTORS]
        whole = sa.cast(row_id, sa.BigInteger)
        return [sa.func.sum(whole), sa.func.sum(whole * (whole % _SPREAD))]

    def count(self, sums: list[int], row_id: int, sign: int) -> None:
        """Add a row to the number of rows and its checksums, or (*sign* -1) take it out."""
        sums[0] += sign
        if self.name == "mysql":
            sums[1] ^= row_id * _FACTORS[0]
            sums[2] ^= row_id * _FACTORS[1]
        else:
            sums[1] += sign * row_id
            sums[2] += sign * row_id * (row_id % _SPREAD)

    def version(
        self, table: sa.Table, columns: Sequence[sa.ColumnElement[Any]]
    ) -> sa.ColumnElement[Any]:
        """What differs when *columns* of a row differ."""
        if self.name == "postgresql":
            return sa.cast(sa.literal_column(f"{table.name}.xmin", sa.Text), sa.Text)
        absent = sa.literal(_ABSENT, sa.Text())
        texts = [sa.func.coalesce(sa.type_coerce(each, sa.Text()), absent) for each in columns]
        return sa.func.crc32(self.joined(*texts))
