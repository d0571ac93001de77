"""The tables of claims as one worker reads and tidies them."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.db import claims as claim_rows
from scheduler.db.database import Database
from scheduler.hosts.table import Key

#: How long closed claims are kept: for requests that arrive twice, and for workers that look late.
KEPT = datetime.timedelta(seconds=300)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the claims found: the ids of all open ones, and the rows not known yet.

    *hosts* are the rows of all hosts, if they were asked for; *held* the generations of hosts that
    were known before the look began.
    """

    number: int
    ids: frozenset[int]
    new: Sequence[Any]
    hosts: Sequence[Any]
    held: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Register:
    """Reads of, and closing in, the claims of *database*."""

    database: Database

    def look(
        self, number: int, known: Collection[int], held: Mapping[Key, int], *, with_hosts: bool
    ) -> Look:
        """Look number *number*: which claims are open now, and what those not *known* say."""
        with self.database.read() as connection:
            hosts = claim_rows.hosts(connection) if with_hosts else ()
            ids = claim_rows.open_ids(connection)
            new = claim_rows.by_ids(connection, ids.difference(known))
        return Look(number, frozenset(ids), new, hosts, held)

    def close(self, ids: Collection[int], now: datetime.datetime) -> None:
        """Close claims that are over."""
        self.database.write_retrying(lambda conn: claim_rows.close(conn, ids, now))

    def purge(self, now: datetime.datetime) -> None:
        """Forget claims that were closed long ago."""
        self.database.write_retrying(lambda conn: claim_rows.purge(conn, now - KEPT))
