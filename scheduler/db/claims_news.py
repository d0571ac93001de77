"""What has changed of the claims, asked for with one statement that is put into SQL once."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler.db import claims as claim_rows
from scheduler.db.tables import claims

#: Where the numbers and the time of a question go.
_NEWEST: sa.ColumnElement[int] = sa.literal_column("{n}")
_MISSED: sa.ColumnElement[int] = sa.literal_column("({m})")
_SINCE: sa.ColumnElement[datetime.datetime] = sa.literal_column("{s}")
_NEVER = datetime.datetime(9999, 1, 1)


class News:
    """Questions by one reader, on connections of one kind."""

    def __init__(self) -> None:
        self._sql: str | None = None

    def ids(
        self,
        connection: Connection,
        newest: int,
        missed: Collection[int],
        closed_since: datetime.datetime | None = None,
    ) -> tuple[set[int], set[int]]:
        """Ids of the claims above *newest* or among *missed*, open or closed; and of those that
        were closed since, if that is given.
        """
        if self._sql is None:
            dialect, how = connection.dialect, {"literal_binds": True}
            self._sql = str(_question().compile(dialect=dialect, compile_kwargs=how))
        since = (closed_since or _NEVER).isoformat(" ", "seconds")
        # Nothing but numbers and a time, which need no quoting.
        sql = self._sql.format(n=newest, m=",".join(map(str, (0, *missed))), s=f"'{since}'")
        found: set[int] = set()
        packed = []
        for first, bits in connection.exec_driver_sql(sql):
            if bits:
                packed.append((int(first), int(bits)))
            else:
                found.add(int(first))
        return found, claim_rows.unpacked(packed)


def _question() -> sa.CompoundSelect[Any]:
    came = claims.c.id > _NEWEST
    late = sa.literal_column("id").op("IN", is_comparison=True)(_MISSED)
    new = sa.select(claims.c.id, sa.literal_column("0")).where(sa.or_(came, late))
    return sa.union_all(new, claim_rows.packed_ids(claims.c.closed_at >= _SINCE))
