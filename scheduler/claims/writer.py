"""Writing claims: a compare-and-swap on the generation of every host, or nothing.

Requests that wait at the same time are written in one transaction.  Those that chose a host which
has moved on are lost, and the others are written without them (docs/decisions/0007).
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
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
from scheduler.db.database import Database
from scheduler.db.sessions import WriteSession
from scheduler.hosts.reservations import Reservation
from scheduler.hosts.table import Key
from scheduler.idempotency import answer_from_text, answer_to_text, refusal_to_text

LOG = logging.getLogger(__name__)

#: Most tries of one batch: each time some hosts may have moved on, or an instance may have got
#: a claim from another request.
WRITES_AT_MOST = 5


@dataclass(slots=True, eq=False)
class Write:
    """One decision to be written; *result* is None until then."""

    request_id: str
    decided: Decided
    result: Result | errors.NoValidHost | None = None

    @property
    def keys(self) -> list[Key]:
        """The hosts of its instances, in order."""
        return [each.key for each in self.decided.reservations]


Written = tuple[dict[Key, int], Sequence[Any]]
"""The generations that a write made of its hosts', and the rows of claims if they were returned."""


class _Moved(Exception):
    """A host is not at the generation that was expected."""


class Batches:
    """Hands what callers bring to *write*, together with what others brought meanwhile.

    One write runs at a time; before it begins, *gather* lets others come.  *write* must leave its
    outcome in each item; an error of either is raised in every caller whose item was among them.
    """

    def __init__(
        self, write: Callable[[list[Any]], None], gather: Callable[[], None] = lambda: None
    ) -> None:
        self._write = write
        self._gather = gather
        self._changed = threading.Condition()
        self._waiting: list[Any] = []
        self._finished: dict[int, BaseException | None] = {}
        self._is_writing = False

    def __call__(self, item: Any) -> None:
        """Return when *item* was part of a write."""
        with self._changed:
            self._waiting.append(item)
            while id(item) not in self._finished and self._is_writing:
                self._changed.wait()
            if id(item) in self._finished:
                error = self._finished.pop(id(item))
                if error is not None:
                    raise error
                return
            self._is_writing = True
        self._run(item)

    def wait(self) -> None:
        """Return when the write that is under way, if there is one, has ended."""
        with self._changed:
            if self._is_writing:
                self._changed.wait()

    def _run(self, own: Any) -> None:
        error: BaseException | None = None
        batch: list[Any] = []
        try:
            try:
                self._gather()
            finally:
                with self._changed:
                    batch, self._waiting = self._waiting, []
            self._write(batch)
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._finished.update((id(each), error) for each in batch if each is not own)
                self._is_writing = False
                self._changed.notify_all()


class ClaimWriter:
    """Writes the decisions of one worker; *lock* is its decision lock."""

    def __init__(self, database: Database, reservations: SharedReservations, lock: Any) -> None:
        self._database = database
        self._reservations = reservations
        self._lock = lock
        self._session = WriteSession(database)
        self._write_with_others = Batches(self._write, concurrency.let_others_catch_up)

    def write(self, request_id: str, decided: Decided) -> Result:
        """Claim for all instances or none; what is not claimed is given back.

        Raises NoValidHost where that was the answer to the same request, and oslo.db's errors
        when the database does not answer.
        """
        one = Write(request_id, decided)
        try:
            self._write_with_others(one)
        except BaseException:
            with self._lock:
                self._lose(_open([one]))
            raise
        if one.result is None:
            raise RuntimeError("a claim was neither written nor refused")
        if isinstance(one.result, errors.NoValidHost):
            raise one.result
        return one.result

    def wait(self) -> None:
        """Let the write that is under way come to its end.

        Who decides after it can come with all others into the next one, and knows what it found.
        """
        self._write_with_others.wait()

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

    def _write(self, batch: list[Write]) -> None:
        reads = False
        for _attempt in range(WRITES_AT_MOST):
            self._know_hosts(batch)
            with self._lock:
                self._lose(each for each in _open(batch) if not self._is_valid(each))
                known = self._reservations.known
                expected = {key: known.get(key, 0) for one in _open(batch) for key in one.keys}
                consumers = self._consumers(batch)
                reads = reads or any(map(self._reservations.claim_of, consumers))
            existing = self._existing(batch, consumers) if reads else {}
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
                self._lose_moved(batch, expected)
            else:
                return
        with self._lock:
            self._lose(_open(batch))

    def _existing(self, batch: list[Write], consumers: list[str]) -> dict[str, Any]:
        """The claims that *consumers* have; a request that was answered before is done."""
        with self._database.read() as conn:
            found = claim_rows.of_consumers(conn, consumers)
            answers = {
                id(one): claim_rows.answered(conn, self._consumers([one]), one.request_id)
                for one in _open(batch)
                if not found.keys().isdisjoint(self._consumers([one]))
            }
        with self._lock:
            self._answer_repeated(batch, answers)
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
            self._lose_unwritten(batch)
        with self._lock:
            several = [each for one in _open(batch) for each in one.decided.reservations]
            self._reservations.written(several, generations, found)
            for one in _open(batch):
                one.result = Booked(one.decided.selections)

    def _lose_moved(self, batch: list[Write], expected: dict[Key, int]) -> None:
        """Lose what was decided on hosts that are at another generation by now.

        A generation that went back (a row made anew, a restored database) is raised above all
        that is known here, as claims with later ones may be open.
        """
        found = self._rows_of(map(db_key, expected))
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
            self._lose(each for each in _open(batch) if not moved.isdisjoint(each.keys))

    def _lose_unwritten(self, batch: list[Write]) -> None:
        """After a commit of unknown end: what was not written is lost."""
        with self._database.read() as connection:
            found = claim_rows.of_consumers(connection, self._consumers(batch))
        with self._lock:
            self._lose(each for each in _open(batch) if not self._is_written(each, found))

    def _is_written(self, one: Write, found: dict[str, Any]) -> bool:
        for each in one.decided.reservations:
            row = found.get(self._reservations.claim(each).consumer)
            if row is None or row.request_id != one.request_id:
                return False
            if (row.host, row.node) != db_key(each.key):
                return False
        return True

    def _answer_repeated(self, batch: list[Write], answers: dict[int, dict[str, Any]]) -> None:
        for one in _open(batch):
            found, consumers = answers.get(id(one), {}), self._consumers([one])
            if not found or any(each not in found for each in consumers):
                continue
            self._reservations.give_back(one.decided.reservations)
            try:
                one.result = Repeated([answer_from_text(found[each].answer) for each in consumers])
            except errors.NoValidHost as refusal:
                one.result = refusal

    def _lose(self, batch: Iterable[Write]) -> None:
        """Others were faster; what they claimed is counted, as far as it is known by now."""
        for one in batch:
            self._reservations.give_back(one.decided.reservations)
            one.result = Lost()

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

    def _know_hosts(self, batch: list[Write]) -> None:
        """Make sure that there is a generation to compare for every host."""
        ids = self._reservations.host_ids
        # A difference of sets would go through all hosts that are known, at every claim.
        missing = {key for each in _open(batch) for key in each.keys if key not in ids}
        if missing:
            self.begin(missing)

    def begin(self, keys: Collection[Key]) -> None:
        """Begin to count the claims on hosts, as far as nobody does yet."""
        wanted = {db_key(key): key for key in keys}
        missing = sorted(wanted.keys() - self._rows_of(wanted).keys())
        for some in rows.in_batches(missing):
            self._add(some)
        found = self._rows_of(wanted)
        self._reservations.host_ids.update({key: found[each].id for each, key in wanted.items()})

    def _rows_of(self, wanted: Iterable[claim_rows.Key]) -> dict[claim_rows.Key, Any]:
        found = {}
        with self._database.read() as connection:
            for some in rows.in_batches(sorted({host for host, _node in wanted})):
                for row in claim_rows.hosts(connection, some):
                    found[row.host, row.node] = row
        return found

    def _add(self, keys: Collection[claim_rows.Key]) -> None:
        """Write the rows of hosts; those that others write just now are theirs."""
        missing = list(keys)
        while missing:
            try:
                self._database.write_retrying(functools.partial(claim_rows.add, keys=missing))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Other workers have begun to count the claims on these hosts just now")
                missing = sorted(set(missing) - self._rows_of(missing).keys())
            else:
                return


def _open(batch: Iterable[Write]) -> list[Write]:
    return [each for each in batch if each.result is None]
