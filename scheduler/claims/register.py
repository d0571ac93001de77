"""The tables of claims as one worker reads and tidies them."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from scheduler.db import claims as claim_rows
from scheduler.db.database import Database
from scheduler.db.read_session import ReadSession
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


class Register:
    """Reads of, and closing in, the claims of *database*."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._session = ReadSession(database)
        #: Held during a look: requests glance while the state is read.
        self._looking = threading.Lock()

    def look(
        self, number: int, known: Collection[int], held: Mapping[Key, int], *, with_hosts: bool
    ) -> Look:
        """Look number *number*: which claims are open now, and what those not *known* say.

        Hosts are read before claims, so that no generation is without the claim that made it.
        """

        def ask(connection: Connection) -> Look:
            hosts = claim_rows.hosts(connection) if with_hosts else ()
            ids = claim_rows.open_ids(connection)
            new = claim_rows.by_ids(connection, ids.difference(known))
            return Look(number, frozenset(ids), new, hosts, held)

        with self._looking:
            return self._session.run(ask)

    def close(self, ids: Collection[int], now: datetime.datetime) -> None:
        """Close claims that are over."""
        self.database.write_retrying(lambda conn: claim_rows.close(conn, ids, now))

    def purge(self, now: datetime.datetime) -> None:
        """Forget claims that were closed long ago."""
        self.database.write_retrying(lambda conn: claim_rows.purge(conn, now - KEPT))
