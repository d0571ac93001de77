"""Writing claims: a compare-and-swap on the generation of every host, or nothing.

Requests that wait at the same time are written in one transaction.  Where hosts have moved on,
their rows are locked and what others claimed is counted; the requests that chose one of those
hosts are lost, and all others are written (docs/decisions/0007).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import concurrency, errors, objects
from scheduler.claims import amounts
from scheduler.claims.backend import Booked, Decided, Lost, Repeated, Result
from scheduler.claims.batches import Batches
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

#: How often hosts are locked for one write: an instance may get a claim from another request just
#: after it was found to have none.
LOCKED_AT_MOST = 3


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


class _Moved(Exception):
    """A host is not at the generation that was expected."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The generations that a write made of its hosts', and the rows of its claims.

    No rows: the engine does not return them; the next read finds them.
    """

    generations: dict[Key, int] = field(default_factory=dict)
    claims: Sequence[Any] = ()


class ClaimWriter:
    """Writes the decisions of one worker; *lock* is its decision lock."""

    def __init__(self, database: Database, reservations: SharedReservations, lock: Any) -> None:
        self._database = database
        self._reservations = reservations
        self._lock = lock
        self._session = WriteSession(database)
        #: Whether hosts had moved on when they were locked last: then they are locked at once.
        self._is_contended = False
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
        self._know_hosts(batch)
        with self._lock:
            self._lose(each for each in batch if not self._is_valid(each))
            live = _open(batch)
            expected = {
                key: self._reservations.known.get(key, 0) for each in live for key in each.keys
            }
            claimed = map(self._reservations.claim_of, self._consumers(live))
            is_first = all(each is None for each in claimed)
        if not live:
            return
        if is_first and not self._is_contended:
            try:
                self._commit(live, lambda conn: self._swap(conn, live, expected))
            except db_exception.DBDuplicateEntry:
                is_first = False
            except _Moved:
                LOG.debug("Others have claimed on the same hosts")
            else:
                return
        self._write_locked(live, is_first=is_first)

    def _write_locked(self, batch: list[Write], *, is_first: bool) -> None:
        for attempt in range(LOCKED_AT_MOST):
            reads = not is_first or attempt > 0
            try:
                self._commit(batch, functools.partial(self._swap_locked, batch=batch, reads=reads))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Another worker has just claimed for one of the same instances")
                continue
            return
        with self._lock:
            self._lose(_open(batch))

    def _commit(self, batch: list[Write], swap: Callable[[Connection], _Written]) -> None:
        try:
            written = self._session.run(swap)
        except db_exception.DBConnectionError:
            LOG.warning("The connection broke while claims were written; looking what is there")
            written = _Written()
            self._lose_unwritten(batch)
        with self._lock:
            several = [each for one in _open(batch) for each in one.decided.reservations]
            self._reservations.written(several, written.generations, written.claims)
            for one in _open(batch):
                one.result = Booked(one.decided.selections)

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

    # --- the two ways to swap ------------------------------------------------------------

    def _swap(self, conn: Connection, batch: list[Write], expected: dict[Key, int]) -> _Written:
        if not claim_rows.compare_and_swap(conn, self._steps(batch, expected)):
            raise _Moved
        return self._insert(conn, batch, expected)

    def _swap_locked(self, conn: Connection, batch: list[Write], *, reads: bool) -> _Written:
        """*reads* claims of the same instances; otherwise DBDuplicateEntry tells of them."""
        keys = sorted({key for each in _open(batch) for key in each.keys}, key=db_key)
        ids = {self._reservations.host_ids[key]: key for key in keys}
        held = claim_rows.lock_hosts(conn, ids)
        generations = {ids[number]: generation for number, generation in held.items()}
        known = {key: self._reservations.known.get(key, 0) for key in keys}
        moved = {key: known[key] for key in keys if generations[key] > known[key]}
        self._is_contended = bool(moved)
        after = {db_key(key): generation for key, generation in moved.items()}
        consumers = set(self._consumers(batch))
        found = claim_rows.made_after_or_of(conn, after, consumers) if moved or reads else ()
        existing = {row.consumer_uuid: row for row in found if row.consumer_uuid in consumers}
        answers = {
            id(each): claim_rows.answered(conn, self._consumers([each]), each.request_id)
            for each in _open(batch)
            if existing.keys() & set(self._consumers([each]))
        }
        with self._lock:
            self._answer_repeated(batch, answers)
            for key, generation in moved.items():
                here = [row for row in found if (row.host, row.node) == db_key(key)]
                newer = [row for row in here if row.generation > generation]
                self._reservations.count_missing(key, newer, generations[key])
            # Another request may have counted a claim since this batch was checked: then its host
            # has not moved, but the decision is no longer valid.
            self._lose(
                each
                for each in _open(batch)
                if not (moved.keys().isdisjoint(each.keys) and self._is_valid(each))
            )
        live = _open(batch)
        if not live:
            return _Written()
        claim_rows.compare_and_swap(conn, self._steps(live, generations))
        replaced = [existing[each] for each in self._consumers(live) if each in existing]
        claim_rows.retire(conn, replaced, rows.utcnow())
        return self._insert(conn, live, generations)

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

    def _steps(self, batch: list[Write], generations: dict[Key, int]) -> dict[int, tuple[int, int]]:
        counts = Counter(key for each in batch for key in each.keys)
        ids = self._reservations.host_ids
        return {ids[key]: (generations[key], count) for key, count in counts.items()}

    def _insert(
        self, conn: Connection, batch: list[Write], generations: dict[Key, int]
    ) -> _Written:
        made = dict(generations)
        values = []
        for one in batch:
            decided = one.decided
            for each, selections in zip(decided.reservations, decided.selections, strict=True):
                made[each.key] += 1
                values.append(self._values(one.request_id, each, made[each.key], selections))
        return _Written(made, claim_rows.insert(conn, values))

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
        missing = {key for each in batch for key in each.keys} - self._reservations.host_ids.keys()
        if missing:
            self.begin(missing)

    def begin(self, keys: Collection[Key]) -> None:
        """Begin to count the claims on hosts, as far as nobody does yet."""
        wanted = {db_key(key): key for key in keys}
        missing = wanted.keys() - self._ids_of(wanted).keys()
        for some in rows.in_batches(sorted(missing)):
            self._add(some)
        ids = self._ids_of(wanted)
        self._reservations.host_ids.update({key: ids[each] for each, key in wanted.items()})

    def _ids_of(self, wanted: Collection[claim_rows.Key]) -> dict[claim_rows.Key, int]:
        ids = {}
        with self._database.read() as connection:
            for some in rows.in_batches(sorted({host for host, _node in wanted})):
                for row in claim_rows.hosts(connection, some):
                    ids[row.host, row.node] = row.id
        return ids

    def _add(self, keys: Collection[claim_rows.Key]) -> None:
        """Write the rows of hosts; those that others write just now are theirs."""
        missing = list(keys)
        while missing:
            try:
                self._database.write_retrying(functools.partial(claim_rows.add, keys=missing))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Other workers have begun to count the claims on these hosts just now")
                missing = sorted(set(missing) - self._ids_of(missing).keys())
            else:
                return


def _open(batch: Iterable[Write]) -> list[Write]:
    return [each for each in batch if each.result is None]
