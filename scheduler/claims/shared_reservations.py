"""The reservations of a worker whose claims are in a database, together with everybody's.

Every open claim, whoever made it, is a reservation on a row of the host table.  A decision is valid
while no foreign claim is counted on its hosts that was not counted before it
(docs/decisions/0007).
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oslo_log import log as logging

from scheduler.claims import amounts, recovery
from scheduler.claims.reader import KEPT, ClaimRead, ClaimReader
from scheduler.db import claims as claim_rows
from scheduler.db.claims import Move
from scheduler.hosts import instances
from scheduler.hosts.columns import seconds
from scheduler.hosts.host_state import Fitting
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable, Key

LOG = logging.getLogger(__name__)

#: Prefix of the names that stand for instances which a request did not name.
UNNAMED = "unnamed-"
#: When a claim that is over is closed by the worker that made it.  If that worker is gone, any
#: other does it a little later.
CLOSE_OWN_AFTER_SECONDS = 2.0
CLOSE_FOREIGN_AFTER_SECONDS = 15.0
#: While answers of this worker show nowhere else, it looks so often whether their claims are there.
LOOK_SECONDS = 1.0


class Counted(NamedTuple):
    """The claims of a host that are counted: all up to *generation* of its row *id*."""

    id: int
    generation: int


@dataclass(slots=True, eq=False)
class Claim:
    """The claim of one reservation as this worker knows it, with its row once it has one.

    Its decision *is_valid* until a foreign claim on the host is counted; *since* is the number of
    the first read that must find the claim, None while it is not written.  The claims *replaced*
    are those that its consumer had when it was decided.
    """

    consumer: str
    is_valid: bool = False
    replaced: Sequence["Claim"] = ()
    row: Any = None
    since: int | None = None


class SharedReservations(Reservations):
    """Reservations of this worker and claims of all others, on one table.

    *expiry_seconds* is how long a claim counts whose instance shows up nowhere, *grace_seconds* how
    long all wait when the database has gone back.
    """

    def __init__(
        self,
        table: HostTable,
        reader: ClaimReader,
        fitting: Fitting,
        expiry_seconds: float,
        grace_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(table, expiry_seconds)
        self.clock = clock
        self.database = reader.database
        self.grace_seconds = grace_seconds
        #: Number of times that the history of the claims was another one than the one known.
        self.histories_lost = 0
        #: Until then nobody claims.
        self.held_until = float("-inf")
        #: Claims that are over as this worker sees it, by id: when they are to be closed for
        #: everybody, and their generation.
        self.over: dict[int, tuple[float, int]] = {}
        #: Generations that this worker is about to write.
        self.in_flight: set[int] = set()
        #: By host what is counted there; the next read of all claims learns about the others.
        self.counted: dict[Key, Counted] = {}
        #: Values of the claims behind answers of this worker that no instance shows yet.
        self._answered: dict[str, Mapping[str, Any]] = {}
        self._writes_again = False
        #: Numbers of the last read that is judged by, and of the last one of another history.
        self._judged = self._stale = 0
        self.reader = reader
        self._fitting = fitting
        self._of_id: dict[int, Reservation] = {}
        self._read: ClaimRead | None = None

    # --- decisions -----------------------------------------------------------------------

    def _reserved(self, reservation: Reservation, name: str | None) -> None:
        """See the base class: a claim is to be made of it."""
        consumer = name or f"{UNNAMED}{secrets.token_hex(8)}"
        earlier = [each.claim for each in self.of((name,)) if each is not reservation]
        reservation.claim = Claim(consumer, reservation.key in self.counted, earlier)
        if reservation.key not in self.counted:
            self.reader.want_all()

    def confirm(self, reservations: Iterable[Reservation]) -> None:
        """Nothing yet: a decision stands when it is written."""

    def is_valid(self, reservation: Reservation) -> bool:
        """True when the decision knew all that is known to be claimed on the host."""
        return reservation.key in self.counted and bool(reservation.claim.is_valid)

    def in_doubt(self) -> list[Reservation]:
        """Reservations that perhaps took nothing when the state was read.

        Not written yet, or written since; or counted by the report, too: the instance is on the
        host, and its row does not say yet that it is counted.
        """
        return [
            each
            for each in self
            if each.claim.since is None
            or each.claim.since > self._judged
            or each.instance is not None
            and each.instance.host == each.key[0]
        ]

    def claim_of(self, consumer: str) -> Any:
        """The row of the latest open claim of *consumer*, None where none is known."""
        several = (each.claim.row for each in self.of((consumer,)))
        return max(filter(None, several), key=lambda row: row.id, default=None)

    def release(self, reservation: Reservation) -> None:
        super().release(reservation)
        if reservation.claim.row is not None:
            self._of_id.pop(reservation.claim.row.id, None)

    def written(
        self,
        reservations: Sequence[Reservation],
        moves: Mapping[Key, Move],
        of_consumer: Mapping[str, Any],
        values: Iterable[Mapping[str, Any]],
    ) -> None:
        """*reservations* are claims by now, written as *values* with *moves*: rows by consumer.

        Earlier ones of the same instances count until a read: these may have arrived there since.
        """
        answered = {each["consumer_uuid"]: each for each in values}
        for reservation in reservations:
            claim = reservation.claim
            row = of_consumer[claim.consumer]
            if not self._is_replaced(row):
                self._answered[claim.consumer] = answered[claim.consumer]
            claim.since = self.reader.reads + 1
            self._attach(reservation, row)
            self.reader.written.add((row.id, row.generation))
        for key, move in moves.items():
            counted = self.counted.get(key)
            if counted is not None and counted.generation == move.expected:
                self.counted[key] = counted._replace(generation=move.generation)

    def repeated(self, claimed: Iterable[Any]) -> None:
        """This worker repeats an answer: what is *claimed*, as rows, is its own, too."""
        for row in claimed:
            if row.closed_at is None and row.id not in self.over and not self._is_replaced(row):
                values = {name: getattr(row, name) for name in claim_rows.VALUES}
                self._answered[row.consumer_uuid] = values

    def _is_replaced(self, row: Any) -> bool:
        """True when a later claim of its consumer is known: others wrote it meanwhile."""
        latest = self.claim_of(row.consumer_uuid)
        return latest is not None and latest.id > row.id

    def forget(self, keys: Iterable[Key]) -> None:
        """Know no generation of these hosts: the next read of all claims learns it anew."""
        for key in keys:
            self.counted.pop(key, None)
        self.reader.want_all()

    # --- claims of all -------------------------------------------------------------------

    def read_claims(self) -> None:
        """Read the claims; what was found is counted by ``take_claims``."""
        now = self.clock()
        with self.database.naming_itself():
            if self._writes_again:
                answered = dict(self._answered)
                there = recovery.write_again(self.database, answered, now, self.grace_seconds)
                self.reader.written.update(there)
                self._writes_again = False
            over = list(self.over.items())
            due = {number: made for number, (due_at, made) in over if due_at <= now}
            self.reader.close(due, now)
            self.reader.purge(now)
            self._read = self.reader.read(
                now,
                lambda: self._of_id.keys() | self.over.keys(),
                lambda: [key for key in list(self.table.rows) if key not in self.counted],
            )

    @property
    def hold_seconds(self) -> float:
        """Time in which nobody claims; not above 0 if there is none."""
        return self.held_until - self.clock()

    def needs_read(self) -> bool:
        """True when claims may be lost, and nobody has looked for a while."""
        is_idle = not 0 <= self.clock() - self.reader.read_at < LOOK_SECONDS
        return self._writes_again or bool(self._answered) and is_idle

    def count_new(self, read: ClaimRead, *, reports_follow: bool = False) -> None:
        """Count the claims of *read*, and know the generations that follow the known ones.

        Closed ones are in the reports, if these were read after the claims: *reports_follow*.
        No claim ends here: the reports may be older than *read*.
        """
        if read.is_other and read.number > self._stale:
            self._start_over(read)
        if read.number <= self._stale:
            return
        self.reader.know([(row.id, row.generation) for row in read.rows])
        for row in read.rows:
            if row.id in self._of_id or row.id in self.over:
                continue
            if row.host == claim_rows.NO_HOST:
                self._hold(row)
                continue
            is_own, key = row.generation in self.in_flight, (row.host, row.node)
            if not is_own and (row.closed_at is None or not reports_follow):
                # A read that is under way may have been too early for it.
                self._count(row, key, read.number if reports_follow else self.reader.reads + 1)
            if key not in read.hosts:
                self._follow(row, key, is_own=is_own)

    def _hold(self, row: Any) -> None:
        """Claim nothing for a while after a mark; a refusal, which is closed, holds nobody."""
        if row.closed_at is None and row.request_id == recovery.MARK:
            latest = self.clock() + 2 * self.grace_seconds
            until = min(seconds(row.expires_at), latest)
            self.over[row.id] = until, row.generation
            self.held_until = max(self.held_until, until)
            self.counted.clear()
            self.reader.want_all()

    def _count(self, row: Any, key: Key, since: int) -> None:
        is_named = not row.consumer_uuid.startswith(UNNAMED)
        reservation = Reservation(
            key,
            amounts.of_row(row, self._fitting),
            instances.terms_of(row),
            row.consumer_uuid if is_named else None,
            TrackedInstance(row.consumer_uuid, *key, instance_type_id=row.flavor_id),
        )
        reservation.claim = Claim(row.consumer_uuid, since=since)
        self.add(reservation)
        self._attach(reservation, row)

    def _follow(self, row: Any, key: Key, *, is_own: bool) -> None:
        """Know the generation that the claim of *row* has made, if it made it of the known one."""
        counted = self.counted.get(key)
        if counted is None or counted.generation == row.generation:
            return
        if row.previous != counted.generation:
            self.forget([key])  # a claim between them was never seen
            return
        self.counted[key] = counted._replace(generation=row.generation)
        if not is_own:
            self._outdate(key)

    def _outdate(self, key: Key) -> None:
        """No decision made until now knew all that is counted on the host."""
        for reservation in self.on(key):
            reservation.claim.is_valid = False

    def _attach(self, reservation: Reservation, row: Any) -> None:
        reservation.claim.row = row
        self._touched[reservation] = None
        self._of_id[row.id] = reservation

    def take_claims(self) -> None:
        """Count what the last read found; the reports of all hosts were read after it."""
        read, self._read = self._read, None
        if read is None:
            return
        self._judged = read.number
        self.count_new(read, reports_follow=True)
        if read.number <= self._stale:
            return
        self.reader.taken(read)
        for key, row in read.hosts.items():
            self.counted[key] = Counted(row.id, row.generation)
            self._outdate(key)
        for number in self._of_id.keys() & read.closed_ids:
            self._end(self._of_id[number])
        for number in self.over.keys() & read.closed_ids:
            del self.over[number]

    def _start_over(self, read: ClaimRead) -> None:
        """Drop all that was read, and have written again what this worker has answered.

        If it has not read for so long that closed claims were purged, it may be all there.
        """
        self._stale = self.reader.reads
        self._writes_again = 0 <= read.at - self.reader.read_at < KEPT.total_seconds()
        if self._writes_again:
            LOG.warning(recovery.GONE_BACK, len(self._answered), self.grace_seconds)
            self.histories_lost += 1
            self.held_until = max(self.held_until, read.at + self.grace_seconds)
        else:
            self._answered.clear()
        # Not by id: ids come again, and one that this worker has just written may be another's.
        self.release_all([each for each in self if each.claim.row is not None])
        self.over.clear()
        self.counted.clear()
        self.reader.start_over()

    # --- the end of claims ---------------------------------------------------------------

    def _end(self, reservation: Reservation) -> None:
        claim = reservation.claim
        answered = self._answered.get(claim.consumer, {"request_id": None})
        if answered["request_id"] == claim.row.request_id and not self._is_replaced(claim.row):
            del self._answered[claim.consumer]
        self.release(reservation)
        for later in self.of((reservation.uuid,)):
            self._show(later)

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """End every claim that the rows just read speak of."""
        self.note(found)
        for reservation in self._to_judge(now):
            claim = reservation.claim
            if claim.since is None or claim.row is None:
                continue
            if claim.since > self._judged:
                self._touched[reservation] = None
            elif claim.row.closed_at is not None:  # before it was first read
                self._end(reservation)
            elif self.end_of(reservation, now) is not None:
                is_own = claim.consumer in self._answered
                own, foreign = CLOSE_OWN_AFTER_SECONDS, CLOSE_FOREIGN_AFTER_SECONDS
                due_at = now + (own if is_own else foreign)
                self.over[claim.row.id] = due_at, claim.row.generation
                self._end(reservation)
