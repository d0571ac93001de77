"""Claims as rows of a database that all schedulers of the fleet name.

A decision is written before it is answered, by ``writer``; what others have written is counted by
``shared_reservations``, which ``reader`` feeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors
from scheduler.claims.backend import (
    Booked,
    Claiming,
    Claims,
    Decided,
    Lost,
    Repeated,
    Request,
    Result,
    Selections,
)
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.claims.writer import ClaimWriter
from scheduler.db import claims as claim_rows
from scheduler.db.database import FAILURES, Database
from scheduler.hosts.refresh import SharedRefresh
from scheduler.hosts.reservations import Reservation
from scheduler.idempotency import answer_from_text

LOG = logging.getLogger(__name__)


class DatabaseClaims(Claims):
    """Writes every answer as claims in *database* before it is given; *lock* is that of decisions.

    While the database does not answer, StateUnavailable is raised.
    """

    needs_regular_reads = needs_database = True

    def __init__(
        self,
        database: Database,
        reservations: SharedReservations,
        lock: Any,
    ) -> None:
        self._database = database
        self._reservations = reservations
        self._lock = lock
        self.writer = ClaimWriter(database, reservations, lock)
        self._read_shared = SharedRefresh(self._count_new)

    def read_new(self) -> None:
        """Count what others have claimed since the hosts' reports were read."""
        with _answering():
            self._read_shared()

    def _count_new(self) -> None:
        read = self._reservations.read_new()
        with self._lock:
            self._reservations.count_new(read)

    def prepare(self) -> None:
        """Begin to count the claims on every host."""
        with self._lock:
            missing = self._reservations.table.rows.keys() - self._reservations.host_ids.keys()
        with _answering():
            self.writer.begin(missing)

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Claiming]:
        """See the base class."""
        if not request.takes_hosts:
            yield _Unclaimed(self._reservations, self._lock)
            return
        self.writer.wait()
        with _answering():
            yield _Claiming(self._database, self._reservations, self.writer, request)


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        LOG.error("Hosts cannot be claimed: %s", error)
        raise errors.StateUnavailable(reason="hosts cannot be claimed") from error


class _Unclaimed(Claiming):
    """A request that takes nothing of its hosts."""

    def __init__(self, reservations: SharedReservations, lock: Any) -> None:
        self._reservations = reservations
        self._lock = lock

    def book(self, decided: Decided) -> Booked:
        """Give the reservations back."""
        with self._lock:
            self._reservations.give_back(decided.reservations)
        return Booked(decided.selections, outcome=None)


class _Claiming(Claiming):
    """One request that is to be claimed for."""

    def __init__(
        self,
        database: Database,
        reservations: SharedReservations,
        writer: ClaimWriter,
        request: Request,
    ) -> None:
        self._database = database
        self._reservations = reservations
        self._writer = writer
        self._request = request

    def book(self, decided: Decided) -> Result:
        """See the base class; raises NoValidHost where that was the answer before."""
        # Without an id of its own no request is ever the same as another one.
        return self._writer.write(self._request.request_id or uuidutils.generate_uuid(), decided)

    def in_doubt(self) -> Collection[Reservation]:
        """See the base class; none where the request's own claims may be what is in its way."""
        claims = [self._reservations.claim_of(uuid) for uuid in self._request.names]
        own = self._request.request_id
        if claims and all(each is not None and each.request_id == own for each in claims):
            return ()
        return self._reservations.in_doubt()

    def refused(self, error: errors.NovaException) -> Lost | Repeated:
        """See the base class: another worker may have given the last host to this very request.

        A refusal is written, so that every worker answers the same from now on.
        """
        given = self._given_before()
        names, own = self._request.names, self._request.request_id
        if (
            given is None
            and names
            and own
            and isinstance(error, errors.NoValidHost)
            and not self._writer.refuse(own, names, error)
        ):
            given = self._given_before()
        if given is None:
            raise error
        return Repeated(given)

    def _given_before(self) -> Selections | None:
        """The answer that the claims of the request hold; None if there are none, or no more.

        Raises NoValidHost if it was that.
        """
        names, own = self._request.names, self._request.request_id
        if not names or not own:
            return None
        with self._database.read() as connection:
            found = claim_rows.answered(connection, names, own)
        if any(uuid not in found for uuid in names):
            return None
        return [answer_from_text(found[uuid].answer) for uuid in names]
