"""Writing claims: all that waits at the same time in one transaction, or nothing.

A compare-and-swap on the generation of every host; decisions on a host that has moved on are lost,
and the others are written without them (docs/decisions/0007).
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import concurrency, errors
from scheduler.claims import amounts
from scheduler.claims.backend import Booked, Decided, Lost, Repeated, Result
from scheduler.claims.reader import utc
from scheduler.claims.shared_reservations import SharedReservations, db_key
from scheduler.db import claims as claim_rows
from scheduler.db.database import FAILURES, is_lock_timeout
from scheduler.db.sessions import WriteSession
from scheduler.hosts.refresh import SharedRun
from scheduler.hosts.reservations import Reservation
from scheduler.hosts.table import Key
from scheduler.idempotency import answer_from_text, answer_to_text

LOG = logging.getLogger(__name__)

#: Most tries of one batch: each time some hosts may have moved on, or an instance may have got
#: a claim from another request.
WRITES_AT_MOST = 5
LOST = Lost()


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


class _LockedTooLong(Exception):
    """Somebody holds a lock on a host for too long."""


class ClaimWriter:
    """Writes decisions on the table of *reservations*; *lock* is that of decisions."""

    def __init__(self, reservations: SharedReservations, lock: Any) -> None:
        self.reservations = reservations
        self.database = reservations.database
        self.lock = lock
        self._session = WriteSession(self.database)
        self._waiting: deque[Write] = deque()
        self._write_all = SharedRun(self._write_waiting, gather=concurrency.let_others_catch_up)

    def wait(self) -> None:
        """Return when the write that is under way, if there is one, has ended."""
        self._write_all.wait()

    def write(self, request_id: str, decided: Decided) -> Result:
        """Claim for all instances or none; what is not claimed is given back.

        Raises NoValidHost where that was the answer to the same request, and oslo.db's errors
        when the database does not answer.
        """
        one = Write(request_id, decided)
        self._waiting.append(one)
        try:
            self._write_all()
        except BaseException as error:
            # After its own end, the error of the next write is that of others.
            if one.result is None or not isinstance(error, Exception):
                with self.lock:
                    self._end(_open([one]))
                raise
        if isinstance(one.result, BaseException):
            raise one.result
        result: Result = one.result
        return result

    # --- one write -----------------------------------------------------------------------

    def _write_waiting(self) -> None:
        batch = [self._waiting.popleft() for _number in range(len(self._waiting))]
        try:
            self._write(batch)
        except BaseException as error:
            with self.lock:
                self._end(_open(batch), error)
            raise

    def _write(self, batch: list[Write]) -> None:
        """Write *batch* together; after an error that is not the connection's, one by one."""
        try:
            self._write_together(batch)
        except db_exception.DBConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - raised by write()
            if len(batch) == 1:
                with self.lock:
                    self._end(_open(batch), error)
            else:
                LOG.debug("Claims of %d requests are written one by one: %s", len(batch), error)
                for one in _open(batch):
                    self._write([one])

    def _write_together(self, batch: list[Write]) -> None:
        reads = False
        for _attempt in range(WRITES_AT_MOST):
            self.begin({key for one in _open(batch) for key in one.keys})
            with self.lock:
                is_valid, known = self.reservations.is_valid, self.reservations.known
                self._end(e for e in _open(batch) if not all(map(is_valid, e.decided.reservations)))
                expected = {key: known[key] for one in _open(batch) for key in one.keys}
                reads = reads or any(map(self.reservations.claim_of, self._consumers(batch)))
            existing = self._existing(batch) if reads else {}
            if not _open(batch):
                return
            try:
                self._commit(_open(batch), expected, existing)
            except db_exception.DBDuplicateEntry:
                LOG.debug("Another worker has just claimed for one of the same instances")
                reads = True
            except claim_rows.Moved:
                LOG.debug("Others have claimed on the same hosts")
                self._end_moved(batch, expected)
            except _LockedTooLong:
                self._end_locked(batch)
            else:
                return
        with self.lock:
            self._end(_open(batch))

    def _existing(self, batch: list[Write]) -> dict[str, Any]:
        """The claims that consumers have; a request that was answered before is done."""
        answers = []
        with self.database.read() as conn:
            found = claim_rows.of_consumers(conn, self._consumers(batch))
            for one in _open(batch):
                consumers = self._consumers([one])
                if not found.keys().isdisjoint(consumers):
                    answers.append((one, earlier_answer(conn, consumers, one.request_id)))
        with self.lock:
            for one, answer in answers:
                if answer is not None:
                    self._end([one], answer)
        return found

    def _commit(
        self, batch: list[Write], expected: dict[Key, int], existing: dict[str, Any]
    ) -> None:
        """Write the claims of *batch* in place of the *existing*."""
        made = Counter(key for one in batch for key in one.keys)
        generations = {key: expected[key] + made[key] for key in made}
        ids = self.reservations.host_ids
        steps = {ids[key]: (expected[key], generations[key]) for key in made}
        replaced = [existing[each] for each in self._consumers(batch) if each in existing]
        values = list(self._values(batch, expected))

        def claim(conn: Connection) -> Sequence[Any]:
            try:
                return claim_rows.claim(conn, steps, values, replaced)
            except FAILURES as error:
                if is_lock_timeout(error):
                    raise _LockedTooLong from error
                raise

        try:
            found = self._session.run(claim)
        except db_exception.DBConnectionError:
            LOG.warning("The connection broke while claims were written; looking what is there")
            generations, found = {}, ()
            self._end_unwritten(batch)
        with self.lock:
            several = [each for one in _open(batch) for each in one.decided.reservations]
            self.reservations.written(several, generations, found)
            for one in _open(batch):
                one.result = Booked(one.decided.selections)

    def _end_moved(self, batch: list[Write], expected: dict[Key, int]) -> None:
        """Lose what was decided on hosts that are at another generation by now.

        A generation that went back (a row made anew, a restored database) is raised above all
        that is known here, as claims with later ones may be open.
        """
        found = claim_rows.known_hosts(self.database, list(map(db_key, expected)))
        behind = {
            row.id: generation + 1
            for key, generation in expected.items()
            if (row := found.get(db_key(key))) is not None and row.generation < generation
        }
        if behind:
            self.database.write_retrying(lambda conn: claim_rows.raise_to(conn, behind))
        with self.lock:
            ids, moved = self.reservations.host_ids, set()
            for key, generation in expected.items():
                row = found.get(db_key(key))
                if row is None:  # somebody deleted it
                    del ids[key]
                elif (row.id, row.generation) != (ids[key], generation):
                    ids[key] = row.id
                    self.reservations.held[key] = behind.get(row.id, row.generation)
                else:
                    continue
                moved.add(key)
            self._end(each for each in _open(batch) if not moved.isdisjoint(each.keys))

    def _end_locked(self, batch: list[Write]) -> None:
        """Lose what was decided on hosts that somebody, who may be stopped, holds a lock on."""
        keys = {self.reservations.host_ids[key]: key for one in _open(batch) for key in one.keys}
        try:
            free = self._session.run(lambda conn: claim_rows.unlocked(conn, keys))
        except FAILURES:  # an older server, which cannot tell
            free = set()
        locked = frozenset(keys[each] for each in keys.keys() - free)
        if not locked and len(_open(batch)) > 1:
            raise _LockedTooLong  # on an instance: one by one it shows on which
        LOG.warning(
            "Locked by others for too long: %s", ", ".join(sorted(key[0] for key in locked))
        )
        lost = [each for each in _open(batch) if not locked.isdisjoint(each.keys)]
        with self.lock:
            self._end(lost or _open(batch), Lost(locked=locked))

    def _end_unwritten(self, batch: list[Write]) -> None:
        """After a commit of unknown end: what was not written is lost."""
        with self.database.read() as connection:
            found = claim_rows.of_consumers(connection, self._consumers(batch))

        def is_written(request_id: str, reservation: Reservation) -> bool:
            row = found.get(self.reservations.claim(reservation).consumer)
            place = (*db_key(reservation.key), request_id)
            return row is not None and (row.host, row.node, row.request_id) == place

        with self.lock:
            for one in _open(batch):
                if not all(is_written(one.request_id, each) for each in one.decided.reservations):
                    self._end([one])

    def _end(self, batch: Iterable[Write], result: Any = LOST) -> None:
        """Give back what was decided; claims of others count, as far as they are known by now."""
        for one in batch:
            self.reservations.give_back(one.decided.reservations)
            one.result = result

    def _consumers(self, batch: list[Write]) -> list[str]:
        several = [each for one in _open(batch) for each in one.decided.reservations]
        return [self.reservations.claim(each).consumer for each in several]

    def _values(
        self, batch: Iterable[Write], expected: Mapping[Key, int]
    ) -> Iterator[dict[str, Any]]:
        """The rows of the claims, whose generations follow the *expected* ones."""
        latest = dict(expected)
        for one in batch:
            pairs = zip(one.decided.reservations, one.decided.selections, strict=True)
            for reservation, selections in pairs:
                latest[reservation.key] += 1
                claim, terms = self.reservations.claim(reservation), reservation.terms
                host, node = db_key(reservation.key)
                generation = latest[reservation.key]
                claim.written = (host, node, generation, one.request_id)
                yield {
                    "consumer_uuid": claim.consumer,
                    "host": host,
                    "node": node,
                    "generation": generation,
                    **amounts.to_columns(reservation.amount),
                    "flavor_id": terms.flavor_id,
                    "source_host": terms.source_host,
                    "request_id": one.request_id,
                    "answer": answer_to_text(selections),
                    "created_at": utc(terms.created_at),
                    "expires_at": utc(terms.expires_at),
                }

    def begin(self, keys: Collection[Key]) -> None:
        """Begin to count the claims on hosts: have a generation to compare for each."""
        ids = self.reservations.host_ids
        # A difference of sets would go through all hosts that are known, at every claim.
        wanted = {db_key(key): key for key in keys if key not in ids}
        if wanted:
            found = claim_rows.begin(self.database, wanted)
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
