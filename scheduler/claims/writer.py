"""Writing claims: a compare-and-swap on the generation of every host, or nothing.

Requests that wait at the same time are written in one transaction.  Those that chose a host which
has moved on are lost, and the others are written without them (docs/decisions/0007).
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import concurrency, errors, objects
from scheduler.claims import amounts
from scheduler.claims.backend import Booked, Decided, Lost, Repeated, Result
from scheduler.claims.reader import utc
from scheduler.claims.shared_reservations import SharedReservations, db_key
from scheduler.db import claims as claim_rows
from scheduler.db import rows
from scheduler.db.sessions import WriteSession
from scheduler.hosts.refresh import SharedRun
from scheduler.hosts.reservations import Reservation
from scheduler.hosts.table import Key
from scheduler.idempotency import answer_from_text, answer_to_text, refusal_to_text

LOG = logging.getLogger(__name__)

#: Most tries of one batch: each time some hosts may have moved on, or an instance may have got
#: a claim from another request.
WRITES_AT_MOST = 5
LOST = Lost()


Written = tuple[dict[Key, int], Sequence[Any]]
"""The generations that a write made of its hosts', and the rows of claims if they were returned."""


@dataclass(slots=True, eq=False)
class Write:
    """One decision to be written; *result* is None until then, or an error to be raised."""

    request_id: str
    decided: Decided
    result: Any = None

    @property
    def keys(self) -> list[Key]:
        """The hosts of its instances, in order."""
        return [each.key for each in self.decided.reservations]


class _Moved(Exception):
    """A host is not at the generation that was expected."""


class ClaimWriter:
    """Writes the decisions of one worker; *lock* is its decision lock."""

    def __init__(self, reservations: SharedReservations, lock: Any) -> None:
        self._database = database = reservations.database
        self._reservations = reservations
        self._lock = lock
        self._session = WriteSession(database)
        self._waiting: deque[Write] = deque()
        self._write_all = SharedRun(self._write_waiting, gather=concurrency.let_others_catch_up)

    def write(self, request_id: str, decided: Decided) -> Result:
        """Claim for all instances or none; what is not claimed is given back.

        Raises NoValidHost where that was the answer to the same request, and oslo.db's errors
        when the database does not answer.
        """
        one = Write(request_id, decided)
        self._waiting.append(one)
        try:
            self._write_all()
        except BaseException:
            with self._lock:
                self._end(_open([one]))
            raise
        if isinstance(one.result, BaseException):
            raise one.result
        result: Result = one.result
        return result

    def wait(self) -> None:
        """Let the write that is under way come to its end.

        Who decides after it can come with all others into the next one, and knows what it found.
        """
        self._write_all.wait()

    def refuse(self, request_id: str, uuids: Sequence[str], refusal: errors.NoValidHost) -> bool:
        """Remember that the request gets no host; False if claims of its instances are there.

        Another worker that gets it as well then answers the same.
        """
        text, now = refusal_to_text(refusal), rows.utcnow()
        several = [claim_rows.refusal(uuid, request_id, text, now) for uuid in uuids]
        try:
            self._database.write_retrying(lambda conn: claim_rows.insert(conn, several))
        except db_exception.DBDuplicateEntry:
            return False
        return True

    # --- one write -----------------------------------------------------------------------

    def _write_waiting(self) -> None:
        batch = [self._waiting.popleft() for _number in range(len(self._waiting))]
        try:
            self._write(batch)
        except BaseException as error:
            with self._lock:
                self._end(_open(batch), error)
            raise

    def _write(self, batch: list[Write]) -> None:
        reads = False
        for _attempt in range(WRITES_AT_MOST):
            self.begin({key for one in _open(batch) for key in one.keys})
            with self._lock:
                self._end(each for each in _open(batch) if not self._is_valid(each))
                known = self._reservations.known
                expected = {key: known[key] for one in _open(batch) for key in one.keys}
                reads = reads or any(map(self._reservations.claim_of, self._consumers(batch)))
            existing = self._existing(batch) if reads else {}
            if not _open(batch):
                return
            swap = functools.partial(
                self._swap, batch=_open(batch), expected=expected, existing=existing
            )
            try:
                self._commit(batch, swap)
            except db_exception.DBDuplicateEntry:
                LOG.debug("Another worker has just claimed for one of the same instances")
                reads = True
            except _Moved:
                LOG.debug("Others have claimed on the same hosts")
                self._end_moved(batch, expected)
            else:
                return
        with self._lock:
            self._end(_open(batch))

    def _existing(self, batch: list[Write]) -> dict[str, Any]:
        """The claims that consumers have; a request that was answered before is done."""
        answers = []
        with self._database.read() as conn:
            found = claim_rows.of_consumers(conn, self._consumers(batch))
            for one in _open(batch):
                consumers = self._consumers([one])
                if not found.keys().isdisjoint(consumers):
                    answers.append((one, earlier_answer(conn, consumers, one.request_id)))
        with self._lock:
            for one, answer in answers:
                if answer is not None:
                    self._end([one], answer)
        return found

    def _swap(
        self,
        conn: Connection,
        batch: list[Write],
        expected: dict[Key, int],
        existing: dict[str, Any],
    ) -> Written:
        """Write the claims of *batch* in place of the *existing*."""
        counts = Counter(key for each in batch for key in each.keys)
        ids = self._reservations.host_ids
        steps = {ids[key]: (expected[key], count) for key, count in counts.items()}
        if not claim_rows.compare_and_swap(conn, steps):
            raise _Moved
        replaced = [existing[each] for each in self._consumers(batch) if each in existing]
        claim_rows.retire(conn, replaced, rows.utcnow())
        made = {key: expected[key] for key in counts}
        values = []
        for one in batch:
            decided = one.decided
            for each, selections in zip(decided.reservations, decided.selections, strict=True):
                made[each.key] += 1
                values.append(self._values(one.request_id, each, made[each.key], selections))
        return made, claim_rows.insert(conn, values)

    def _commit(self, batch: list[Write], swap: Callable[[Connection], Written]) -> None:
        try:
            generations, found = self._session.run(swap)
        except db_exception.DBConnectionError:
            LOG.warning("The connection broke while claims were written; looking what is there")
            generations, found = {}, ()
            self._end_unwritten(batch)
        with self._lock:
            several = [each for one in _open(batch) for each in one.decided.reservations]
            self._reservations.written(several, generations, found)
            for one in _open(batch):
                one.result = Booked(one.decided.selections)

    def _end_moved(self, batch: list[Write], expected: dict[Key, int]) -> None:
        """Lose what was decided on hosts that are at another generation by now.

        A generation that went back (a row made anew, a restored database) is raised above all
        that is known here, as claims with later ones may be open.
        """
        found = claim_rows.known_hosts(self._database, list(map(db_key, expected)))
        behind = {
            row.id: generation + 1
            for key, generation in expected.items()
            if (row := found.get(db_key(key))) is not None and row.generation < generation
        }
        if behind:
            self._database.write_retrying(lambda conn: claim_rows.raise_to(conn, behind))
        with self._lock:
            ids, moved = self._reservations.host_ids, set()
            for key, generation in expected.items():
                row = found.get(db_key(key))
                if row is None:  # somebody deleted it
                    del ids[key]
                elif (row.id, row.generation) != (ids[key], generation):
                    ids[key] = row.id
                    self._reservations.held[key] = behind.get(row.id, row.generation)
                else:
                    continue
                moved.add(key)
            self._end(each for each in _open(batch) if not moved.isdisjoint(each.keys))

    def _end_unwritten(self, batch: list[Write]) -> None:
        """After a commit of unknown end: what was not written is lost."""
        with self._database.read() as connection:
            found = claim_rows.of_consumers(connection, self._consumers(batch))
        with self._lock:
            self._end(each for each in _open(batch) if not self._is_written(each, found))

    def _is_written(self, one: Write, found: dict[str, Any]) -> bool:
        for each in one.decided.reservations:
            row = found.get(self._reservations.claim(each).consumer)
            if row is None or row.request_id != one.request_id:
                return False
            if (row.host, row.node) != db_key(each.key):
                return False
        return True

    def _end(self, batch: Iterable[Write], result: Any = LOST) -> None:
        """Give back what was decided; claims of others count, as far as they are known by now."""
        for one in batch:
            self._reservations.give_back(one.decided.reservations)
            one.result = result

    # --- small parts ---------------------------------------------------------------------

    def _is_valid(self, one: Write) -> bool:
        return all(map(self._reservations.is_valid, one.decided.reservations))

    def _consumers(self, batch: list[Write]) -> list[str]:
        several = [each for one in _open(batch) for each in one.decided.reservations]
        return [self._reservations.claim(each).consumer for each in several]

    def _values(
        self,
        request_id: str,
        reservation: Reservation,
        generation: int,
        selections: Sequence[objects.Selection],
    ) -> dict[str, Any]:
        claim, terms = self._reservations.claim(reservation), reservation.terms
        host, node = db_key(reservation.key)
        claim.written = (host, node, generation, request_id)
        return {
            "consumer_uuid": claim.consumer,
            "host": host,
            "node": node,
            "generation": generation,
            **amounts.to_columns(reservation.amount),
            "flavor_id": terms.flavor_id,
            "source_host": terms.source_host,
            "request_id": request_id,
            "answer": answer_to_text(selections),
            "created_at": utc(terms.created_at),
            "expires_at": utc(terms.expires_at),
        }

    def begin(self, keys: Collection[Key]) -> None:
        """Begin to count the claims on hosts: have a generation to compare for each."""
        ids = self._reservations.host_ids
        # A difference of sets would go through all hosts that are known, at every claim.
        wanted = {db_key(key): key for key in keys if key not in ids}
        if wanted:
            found = claim_rows.begin(self._database, wanted)
            ids.update({key: found[each].id for each, key in wanted.items()})


def earlier_answer(
    connection: Connection, consumers: Collection[str], request_id: str
) -> Repeated | errors.NoValidHost | None:
    """The answer that the claims of the request hold; None if there are none, or no more."""
    found = claim_rows.answered(connection, consumers, request_id)
    if any(each not in found for each in consumers):
        return None
    try:
        return Repeated([answer_from_text(found[each].answer) for each in consumers])
    except errors.NoValidHost as refusal:
        return refusal


def _open(batch: Iterable[Write]) -> list[Write]:
    return [each for each in batch if each.result is None]
