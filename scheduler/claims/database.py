"""Claims as rows of a database that all schedulers of the fleet name.

A decision is written before it is answered, by ``writer``.  Claims that others have written are
counted by ``shared_reservations``, which ``reader`` feeds (docs/decisions/0007).
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors
from scheduler.claims.backend import (
    Booked,
    Claiming,
    Claims,
    Decided,
    Lost,
    Offered,
    Repeated,
    Request,
    Result,
)
from scheduler.claims.reader import utc
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.claims.writer import LOST, ClaimWriter
from scheduler.db import claims as claim_rows
from scheduler.db.database import FAILURES, refused_value
from scheduler.hosts.refresh import SharedRun
from scheduler.hosts.reservations import Reservation
from scheduler.hosts.table import Key
from scheduler.idempotency import refusal_to_text

LOG = logging.getLogger(__name__)


class DatabaseClaims(Claims):
    """Writes every answer as claims before it is given, or raises StateUnavailable.

    *lock* is that of decisions.
    """

    needs_database = True

    def __init__(
        self,
        reservations: SharedReservations,
        lock: Any,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.reservations = reservations
        self.pause = pause
        self.database = reservations.database
        self.lock = lock
        self.writer = ClaimWriter(reservations, lock)
        self._read_shared = SharedRun(self.writer.count_new)

    def read_new(self) -> None:
        """Count what others have claimed since the hosts' reports were read."""
        with _answering():
            self._read_shared()

    def prepare(self) -> None:
        """Have the next read learn the generations of all hosts."""
        self.reservations.reader.want_all()

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Claiming]:
        """See the base class: decided after the write under way, all come into the next one."""
        self.writer.wait()
        with _answering():
            yield _Claiming(self, request)

    def refuse(self, request_id: str, uuids: Sequence[str], refusal: errors.NoValidHost) -> bool:
        """Remember for every worker that the request gets no host; False if it has an answer."""
        text, now = refusal_to_text(refusal), utc(self.reservations.clock())
        several = [claim_rows.refusal(uuid, request_id, text, now) for uuid in uuids]
        try:
            self.database.write_retrying(lambda conn: claim_rows.insert(conn, several))
        except db_exception.DBDuplicateEntry:
            return False
        return True


class _Claiming(Claiming):
    """One request that is to be claimed for, unless it takes nothing of its hosts."""

    def __init__(self, claims: DatabaseClaims, request: Request) -> None:
        self._claims = claims
        self._takes_hosts = request.takes_hosts
        self._id = request.request_id if request.takes_hosts else None
        self._names = request.names if request.takes_hosts else ()
        self._locked: set[Key] = set()

    def offered(self) -> Offered | None:
        """See the base class: any host on which nobody holds a lock for too long."""
        if self._claims.writer.await_turn():
            self._claims.read_new()
        if not self._locked:
            return None
        with self._claims.lock:
            table = self._claims.reservations.table
            found = [table.rows[key] for key in self._locked & table.rows.keys()]
            return Offered({table.value(row, "uuid"): 0 for row in found}, others=True)

    def book(self, decided: Decided) -> Result:
        """See the base class; raises NoValidHost where that was the answer before."""
        claims = self._claims
        hold_seconds = claims.reservations.hold_seconds
        if self._takes_hosts and hold_seconds <= 0:
            # Without an id of its own no request is ever the same as another one.
            result = claims.writer.write(self._id or uuidutils.generate_uuid(), decided)
            if isinstance(result, Lost):
                self._locked |= result.locked
            return result
        with claims.lock:
            claims.reservations.release_all(decided.reservations)
        if self._takes_hosts:
            claims.pause(hold_seconds)
            return LOST
        return Booked(decided.selections, outcome=None)

    def in_doubt(self) -> Collection[Reservation]:
        """See the base class; none where the request's own claims may be what is in its way."""
        found = [self._claims.reservations.claim_of(uuid) for uuid in self._names]
        if found and all(each is not None and each.request_id == self._id for each in found):
            return ()
        return self._claims.reservations.in_doubt()

    def refused(self, error: errors.NovaException) -> Lost | Repeated:
        """See the base class: another worker may have given the last host to this very request.

        A refusal is written, so that every worker answers the same from now on.  No host is refused
        for a lock, or while lost claims are written again.
        """
        claims = self._claims
        hold_seconds = max(claims.reservations.hold_seconds, 0.0)
        if (self._locked or hold_seconds) and isinstance(error, errors.NoValidHost):
            self._locked.clear()
            claims.pause(hold_seconds)
            return LOST
        if not self._names or not self._id:
            raise error
        if isinstance(error, errors.NoValidHost) and claims.refuse(self._id, self._names, error):
            raise error
        answer = claims.writer.earlier_answer(self._names, self._id)
        if isinstance(answer, Repeated):
            return answer
        raise error if answer is None else answer


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (*FAILURES, db_exception.DBInvalidUnicodeParameter) as error:
        if (text := refused_value(error)) is not None:
            raise errors.InvalidRequest(field="a value", reason=text) from error
        LOG.error("Hosts cannot be claimed: %s", error)
        raise errors.StateUnavailable(reason="hosts cannot be claimed") from error
