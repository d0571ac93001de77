"""Writing claims: all that waits at the same time in one transaction, or nothing.

A compare-and-swap on the generation of every host; decisions on a host that has moved on are lost,
and the others are written without them (docs/decisions/0007).
"""

import random
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import concurrency, errors
from scheduler.claims import amounts
from scheduler.claims.backend import Booked, Decided, Lost, Repeated, Result
from scheduler.claims.reader import utc
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.db import claims as claim_rows
from scheduler.db.claims import Move, Values
from scheduler.db.database import FAILURES, is_lock_timeout
from scheduler.db.sessions import WriteSession
from scheduler.hosts.refresh import SharedRun
from scheduler.hosts.table import Key
from scheduler.idempotency import answer_from_text, answer_to_text

LOG = logging.getLogger(__name__)

#: Most tries of one batch: each time some hosts may have moved on, or an instance may have got
#: a claim from another request.
WRITES_AT_MOST = 5
#: After so many lost races in a row, counted from one, a worker lets others go first, for a time at
#: random up to this.  Else of eight workers that want the same host some lose fifty times.
PAUSES_SECONDS: Final = (0.0, 0.0, 0.0, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
LOST = Lost()


@dataclass(slots=True, eq=False)
class Write:
    """One decision to be written; *result* is None until then, or an error to be raised."""

    request_id: str
    decided: Decided
    result: Any = None

    @property
    def keys(self) -> list[Key]:
        return [each.key for each in self.decided.reservations]


class _LockedTooLong(Exception):
    """Somebody holds a lock on a host for too long."""


class _Apart(Exception):
    """Requests are not to be written together."""


class ClaimWriter:
    """Writes decisions on the table of *reservations*; *lock* is that of decisions."""

    def __init__(self, reservations: SharedReservations, lock: Any) -> None:
        self.reservations = reservations
        self.database = reservations.database
        self.lock = lock
        self._session = WriteSession(self.database)
        self._waiting: deque[Write] = deque()
        self._races_lost = 0
        self._turn_at = float("-inf")
        self._write_all = SharedRun(self._write_waiting, gather=concurrency.let_others_catch_up)

    def count_new(self) -> None:
        """Count what others have claimed since the hosts' reports were read."""
        read = self.reservations.reader.read_new(self.reservations.clock())
        with self.lock:
            self.reservations.count_new(read)

    def wait(self) -> None:
        """Return when the write that is under way has ended, and it is this worker's turn."""
        self._write_all.wait()
        self.await_turn()

    def await_turn(self) -> bool:
        """Let others go first after several lost races in a row; True if that took time."""
        seconds = self._turn_at - time.monotonic()
        if seconds > 0:
            time.sleep(seconds)
        return seconds > 0

    def write(self, request_id: str, decided: Decided) -> Result:
        """Claim for all instances or none; what is not claimed is given back.

        Raises NoValidHost where that was the answer to the same request, and oslo.db's errors
        when the database does not answer.
        """
        one = Write(request_id, decided)
        self._waiting.append(one)
        try:
            self._write_all()
        finally:
            if one.result is None:  # its thread is to end
                self._end([one])
        if isinstance(one.result, BaseException):
            raise one.result
        result: Result = one.result
        return result

    def earlier_answer(
        self, consumers: Collection[str], request_id: str
    ) -> Repeated | errors.NoValidHost | None:
        """The answer that the claims of the request hold; None if there are none, or no more."""
        return self._answer_of(self._written_for(consumers, request_id), consumers)

    def _answer_of(
        self, found: Mapping[str, Any], consumers: Collection[str]
    ) -> Repeated | errors.NoValidHost | None:
        if any(each not in found for each in consumers):
            return None
        try:
            answer = Repeated([answer_from_text(found[each].answer) for each in consumers])
        except errors.NoValidHost as refusal:
            return refusal
        with self.lock:
            self.reservations.repeated(found.values())
        return answer

    def _written_for(self, consumers: Collection[str], request_id: str) -> dict[str, Any]:
        """The claims or refusals of one request, by consumer."""
        with self.database.read() as connection:
            found = claim_rows.of_consumers(connection, consumers)
        return {row.consumer_uuid: row for row in found if row.request_id == request_id}

    # --- one write -----------------------------------------------------------------------

    def _write_waiting(self) -> None:
        self._write([self._waiting.popleft() for _number in range(len(self._waiting))])

    def _write(self, batch: list[Write]) -> None:
        """Write *batch* together; after an error that is not the connection's, one by one."""
        try:
            self._write_together(batch)
        except Exception as error:  # noqa: BLE001 - raised by write()
            left = _open(batch)
            if len(left) > 1 and not isinstance(error, db_exception.DBConnectionError):
                LOG.debug("Claims of %d requests are written one by one: %s", len(left), error)
                for one in left:
                    self._write([one])
            self._end(left, error)

    def _write_together(self, batch: list[Write]) -> None:
        names = _consumers(batch)
        if len({*names}) < len(names):
            raise _Apart("two are for one instance, and the later one replaces the other")
        aside: set[int] = set()
        for _attempt in range(WRITES_AT_MOST):
            with self.lock:
                moves = self._valid_moves(batch)
            if not _open(batch):
                return
            try:
                self._claim(_open(batch), moves, aside)
            except db_exception.DBDuplicateEntry:
                LOG.debug("Another worker has just answered one of the same requests")
                aside = self._end_repeated(batch)
            except claim_rows.Moved:
                LOG.debug("Others have claimed on the same hosts")
                self._end_moved(batch, moves)
            except _LockedTooLong:
                self._end_locked(batch, moves)
            else:
                return
        self._end(batch)

    def _valid_moves(self, batch: list[Write]) -> dict[Key, Move]:
        """Moves of the hosts of *batch* to new generations; decisions that do not hold are lost."""
        is_valid, counted = self.reservations.is_valid, self.reservations.counted
        for each in _open(batch):
            if not all(map(is_valid, each.decided.reservations)):
                self._end([each], Lost(needs_read=not counted.keys() >= {*each.keys}))
        return {key: Move.from_row(counted[key]) for one in _open(batch) for key in one.keys}

    def _end_repeated(self, batch: list[Write]) -> set[int]:
        """End requests that were answered before.

        Returns the ids of claims that are no answer, as others of their request are gone.
        """
        aside: set[int] = set()
        for one in _open(batch):
            consumers = _consumers([one])
            found = self._written_for(consumers, one.request_id)
            if (answer := self._answer_of(found, consumers)) is not None:
                self._end([one], answer)
            else:
                aside |= {row.id for row in found.values()}
        return aside

    def _claim(self, batch: list[Write], moves: dict[Key, Move], aside: Iterable[int]) -> None:
        """Write the claims of *batch*; those *aside* make way."""
        moves = {key: moves[key] for one in batch for key in one.keys}
        values = [each for one in batch for each in _values(one, moves)]
        reservations = [each for one in batch for each in one.decided.reservations]
        earlier = [claim.row for each in reservations for claim in each.claim.replaced]
        replaced = [row.id for row in earlier if row is not None]
        self.reservations.in_flight = {move.generation for move in moves.values()}
        try:
            rows = self._write_rows(moves, values, replaced, aside)
            with self.lock:
                if not rows.keys() >= {*_consumers(batch)}:
                    self._end(batch)
                    return
                self.reservations.written(reservations, moves, rows, values)
                self._races_lost, self._turn_at = 0, float("-inf")
                for one in batch:
                    one.result = Booked(one.decided.selections)
        finally:
            self.reservations.in_flight = set()

    def _write_rows(
        self, moves: dict[Key, Move], values: list[Values], *ids: Iterable[int]
    ) -> dict[str, Any]:
        """The rows of the claims that were written, by consumer: all of them, or none."""
        now = utc(self.reservations.clock())

        def claim(conn: Connection) -> Sequence[Any]:
            try:
                return claim_rows.claim(conn, moves.values(), values, now, *ids)
            except FAILURES as error:
                if is_lock_timeout(error):
                    raise _LockedTooLong from error
                raise

        try:
            return {row.consumer_uuid: row for row in self._session.run(claim)}
        except db_exception.DBConnectionError:
            LOG.warning("The connection broke while claims were written; looking what is there")
        with self.lock:  # a read may have followed these generations, which are in doubt now
            self.reservations.forget(moves)
        with self.database.read() as connection:
            found = claim_rows.of_consumers(connection, [row["consumer_uuid"] for row in values])
        made = self.reservations.in_flight
        return {row.consumer_uuid: row for row in found if row.generation in made}

    def _end_moved(self, batch: list[Write], moves: Mapping[Key, Move]) -> None:
        """Outdate what was decided on hosts that others claimed on; lose all if nobody did."""
        self._races_lost += 1
        longest = PAUSES_SECONDS[min(self._races_lost, len(PAUSES_SECONDS)) - 1]
        self._turn_at = time.monotonic() + random.uniform(0, longest)
        self.count_new()
        with self.lock:
            counted = self.reservations.counted
            if all(counted.get(key, ())[:2] == move[:2] for key, move in moves.items()):
                self.reservations.forget(moves)
                self._end(batch)

    def _end_locked(self, batch: list[Write], moves: Mapping[Key, Move]) -> None:
        """Lose what was decided on hosts that somebody, who may be stopped, holds a lock on."""
        keys = {moves[key].id: key for one in _open(batch) for key in one.keys}
        try:
            free = self._session.run(lambda conn: claim_rows.unlocked(conn, keys))
        except FAILURES:  # an older server, which cannot tell
            free = set()
        locked = frozenset(keys[each] for each in keys.keys() - free)
        if not locked and len(_open(batch)) > 1:
            raise _Apart("one of the instances is locked; by themselves they show which")
        LOG.warning(
            "Locked by others for too long: %s", ", ".join(sorted(key[0] for key in locked))
        )
        lost = [each for each in _open(batch) if not locked.isdisjoint(each.keys)]
        self._end(lost or batch, Lost(locked=locked))

    def _end(self, batch: Iterable[Write], result: Any = LOST) -> None:
        """Give back what was decided, where the end of it is still open.

        After an error of the database it may be written all the same, and a read that was under
        way has left it to this write: the next read learns it anew.
        """
        with self.lock:
            for one in _open(batch):
                self.reservations.release_all(one.decided.reservations)
                if isinstance(result, FAILURES):
                    self.reservations.forget(one.keys)
                one.result = result


def _open(batch: Iterable[Write]) -> list[Write]:
    return [each for each in batch if each.result is None]


def _consumers(batch: Iterable[Write]) -> list[str]:
    several = [each for one in _open(batch) for each in one.decided.reservations]
    return [each.claim.consumer for each in several]


def _values(one: Write, moves: Mapping[Key, Move]) -> Iterator[Values]:
    decided = one.decided
    for reservation, selections in zip(decided.reservations, decided.selections, strict=True):
        terms, (host, node) = reservation.terms, reservation.key
        yield {
            "consumer_uuid": reservation.claim.consumer,
            "host": host,
            "node": node,
            **moves[reservation.key].made,
            **amounts.to_columns(reservation.amount),
            "flavor_id": terms.flavor_id,
            "source_host": terms.source_host,
            "request_id": one.request_id,
            "answer": answer_to_text(selections),
            "created_at": utc(terms.created_at),
            "expires_at": utc(terms.expires_at),
        }
