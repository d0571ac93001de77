"""The reservations of a worker whose claims are in a database, together with everybody's.

Every open claim, whoever made it, is a reservation on a row of the host table.  A decision is valid
while no foreign claim is counted on its hosts that was not counted before it
(docs/decisions/0007).
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from scheduler.claims import amounts
from scheduler.claims.reader import ClaimRead, ClaimReader
from scheduler.db import claims as claim_rows
from scheduler.hosts import instances
from scheduler.hosts.host_state import Fitting
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.reservations import Reservation, Reservations, drop
from scheduler.hosts.table import HostTable, Key

#: Prefix of the names that stand for instances which a request did not name.
UNNAMED = "unnamed-"
#: When a claim that is over is closed by the worker that made it.  If that worker is gone, any
#: other does it a little later.
CLOSE_OWN_AFTER_SECONDS = 2.0
CLOSE_FOREIGN_AFTER_SECONDS = 15.0
NEVER_CLOSED = float("inf")


@dataclass(slots=True, eq=False)
class Claim:
    """One claim as this worker knows it: its reservation, and its row once that was read.

    *foreign* counts the foreign claims on its host when the reservation was made; *since* is the
    number of the first read that must find the claim, None while it is not written.
    """

    reservation: Reservation
    consumer: str
    foreign: int = 0
    #: Host, node, generation and request id of the claim that was, or is being, written for it.
    written: tuple[str, str, int, str] | None = None
    row: Any = None
    since: int | None = None


def db_key(key: Key) -> claim_rows.Key:
    """The key of a host as the tables have it."""
    return key[0], key[1] or ""


class SharedReservations(Reservations):
    """Reservations of this worker and claims of all others, on one table.

    *expiry_seconds* is how long a claim counts whose instance shows up nowhere.
    """

    def __init__(
        self,
        table: HostTable,
        reader: ClaimReader,
        fitting: Fitting,
        expiry_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(table, expiry_seconds)
        self.clock = clock
        self.database = reader.database
        self._judged = 0
        self._reader = reader
        #: Generation of each host up to which every claim is counted, and how many are our own.
        self.known: Counter[Key] = Counter()
        self.host_ids: dict[Key, int] = {}
        #: Generations met when a claim was lost, which are known after the next full read.
        self.held: dict[Key, int] = {}
        #: Claims that are over as this worker sees it: when they are to be closed for everybody.
        self.over: dict[int, float] = {}
        self._own: Counter[Key] = Counter()
        self._fitting = fitting
        self._claims: dict[Reservation, Claim] = {}
        self._of_id: dict[int, Claim] = {}
        self._of_consumer: dict[str, Claim] = {}
        self._read: ClaimRead | None = None
        self._unread: dict[str, list[Claim]] = {}

    # --- decisions -----------------------------------------------------------------------

    def foreign(self, key: Key) -> int:
        """Number of foreign claims on the host that this worker has counted."""
        return self.known[key] - self._own[key]

    def _reserved(self, reservation: Reservation, name: str | None) -> None:
        """See the base class: a claim is to be made of it."""
        consumer = name or f"{UNNAMED}{secrets.token_hex(8)}"
        claim = Claim(reservation, consumer, self.foreign(reservation.key))
        self._claims[reservation] = claim
        self._unread.setdefault(consumer, []).append(claim)

    def confirm(self, reservations: Iterable[Reservation]) -> None:
        """Nothing yet: a decision stands when it is written."""

    def claim(self, reservation: Reservation) -> Claim:
        """The claim of *reservation*, written or not."""
        return self._claims[reservation]

    def in_doubt(self) -> list[Reservation]:
        """Reservations that perhaps took nothing when the state was read.

        Not written yet, or written since; or counted by the report, too: the instance is on the
        host, and its row does not say yet that it is counted.
        """
        return [
            each
            for each, claim in self._claims.items()
            if claim.since is None
            or claim.since > self._judged
            or each.instance is not None
            and each.instance.host == each.key[0]
        ]

    def forget_removed_hosts(self) -> None:
        """See the base class; hosts with a reservation are kept."""
        for key in self._own.keys() - self.table.rows.keys() - self._of_key.keys():
            del self._own[key]

    def claim_of(self, consumer: str) -> Any:
        """The row of the open claim of *consumer*, None where none is known."""
        claim = self._of_consumer.get(consumer)
        return None if claim is None else claim.row

    def is_valid(self, reservation: Reservation) -> bool:
        """True when the decision knew all that is known to be claimed on the host."""
        return self._claims[reservation].foreign == self.foreign(reservation.key)

    def release(self, reservation: Reservation) -> None:
        """See the base class."""
        super().release(reservation)
        claim = self._claims.pop(reservation)
        if claim.row is None:
            drop(self._unread, claim.consumer, claim)
        else:
            self._of_id.pop(claim.row.id, None)
            if self._of_consumer.get(claim.consumer) is claim:
                del self._of_consumer[claim.consumer]

    def written(
        self,
        reservations: Sequence[Reservation],
        generations: dict[Key, int],
        rows: Sequence[Any] = (),
    ) -> None:
        """*reservations* are in the database, *generations* are what they made of their hosts'.

        *rows* are those of their claims, if the engine returned them; else the next read does.
        """
        for reservation in reservations:
            claim = self._claims[reservation]
            replaced = self._of_consumer.get(claim.consumer)
            if replaced is not None and replaced is not claim:
                self.over[replaced.row.id] = NEVER_CLOSED
                self.release(replaced.reservation)
            self._show(reservation)
            claim.since = self._reader.reads + 1
            self._touched[reservation] = None
            if claim.row is None:
                self._own[reservation.key] += 1
        for key, generation in generations.items():
            self._know(key, generation)
        for row in rows:
            self.count(row)

    def _know(self, key: Key, generation: int) -> None:
        self.known[key] = max(self.known[key], generation)

    def give_back(self, reservations: Sequence[Reservation]) -> None:
        """*reservations* are not claimed; claims found in their place count."""
        for reservation in reversed(reservations):
            row = self._claims[reservation].row
            self.release(reservation)
            if row is not None:
                self._own[reservation.key] -= 1
                self.count(row)

    # --- claims of all -------------------------------------------------------------------

    def read_claims(self) -> None:
        """Read the claims; what was found is taken over by the next call of ``settle``."""
        now = self.clock()
        due = [number for number, due_at in self.over.items() if due_at <= now]
        if self._reader.close(due, now):
            self.over.update(dict.fromkeys(self.over.keys() & due, NEVER_CLOSED))
        self._reader.purge(now)
        self._read = self._reader.read(
            now, lambda: self._of_id.keys() | self.over.keys(), self.held
        )

    def read_new(self) -> ClaimRead:
        """Read the claims without a following read of reports; for ``count_new``."""
        return self._reader.read_new(self.clock())

    def count(self, row: Any, read: ClaimRead | None = None) -> None:
        """Count the claim of *row*, unless it is counted; it was found by *read*, or since."""
        if row.id in self._of_id or row.id in self.over:
            return
        for claim in self._unread.get(row.consumer_uuid, ()):
            if claim.written == (row.host, row.node, row.generation, row.request_id):
                # A reservation of ours turned out to be in the database.
                drop(self._unread, claim.consumer, claim)
                self._attach(claim, row)
                if claim.since is None:
                    self._own[claim.reservation.key] += 1
                return
        key = self._key_of(row)
        is_named = not row.consumer_uuid.startswith(UNNAMED)
        reservation = Reservation(
            key,
            amounts.of_row(row, self._fitting),
            instances.terms_of(row, key),
            row.consumer_uuid if is_named else None,
            TrackedInstance(row.consumer_uuid, *key, instance_type_id=row.flavor_id),
        )
        self.add(reservation)
        # A read that is under way may have been too early for it.
        since = self._reader.reads + 1 if read is None else read.number
        claim = self._claims[reservation] = Claim(reservation, row.consumer_uuid, since=since)
        self._attach(claim, row)

    def _attach(self, claim: Claim, row: Any) -> None:
        claim.row = row
        self._touched[claim.reservation] = None
        self._reader.ids.add({row.id})
        self._of_id[row.id] = claim
        self._of_consumer[claim.consumer] = claim

    def _key_of(self, row: Any) -> Key:
        if not row.node and (row.host, "") not in self.table.rows:
            return row.host, None
        return row.host, row.node

    def count_new(self, read: ClaimRead, *, reports_follow: bool = False) -> None:
        """Count the open claims of *read*, and know the generations that follow the known ones.

        Closed ones are in the reports, if these were read after the claims: *reports_follow*.
        No claim ends here: the reports may be older than *read*.
        """
        self._reader.ids.add({row.id for row in read.rows})
        rows = [row for row in read.rows if row.host != claim_rows.NO_HOST]
        for row in sorted(rows, key=lambda each: each.generation):
            if row.closed_at is None:
                self.count(row, read if reports_follow else None)
            key = self._key_of(row)
            known = self.known[key]
            if row.generation == known + 1 and (reports_follow or row.closed_at is None):
                self.known[key] = row.generation
            elif row.generation > known:
                self._reader.want_all()

    def _take_over(self, read: ClaimRead) -> None:
        """Count what *read* found; the reports of all hosts were read after it."""
        self._reader.taken(read)
        if read.open_ids is None:
            self.count_new(read, reports_follow=True)
            closed = read.closed_ids
        else:
            self._count_all(read, read.open_ids)
            closed = (self._of_id.keys() | self.over.keys()) - read.open_ids
        self._release_known([self._of_id[number] for number in self._of_id.keys() & closed], read)
        for number in self.over.keys() & closed:
            del self.over[number]

    def _count_all(self, read: ClaimRead, open_ids: Set[int]) -> None:
        for row in read.rows:
            self.count(row, read)
        for number in self._of_id.keys() & open_ids:
            claim = self._of_id[number]
            self._know(claim.reservation.key, claim.row.generation)
        for row in read.hosts:
            key = self._key_of(row)
            self._know(key, row.generation)
            self.host_ids[key] = row.id
        # Claims up to a generation that was met are among those read now.
        for key, generation in read.held.items():
            self._know(key, generation)
            if self.held.get(key) == generation:
                del self.held[key]
        self._release_known([each for several in self._unread.values() for each in several], read)

    def _release_known(self, claims: Iterable[Claim], read: ClaimRead) -> None:
        """Release *claims*, which *read* does not show, as far as they were known before it."""
        for claim in claims:
            if claim.since is not None and claim.since <= read.number:
                self.release(claim.reservation)

    # --- the end of claims ---------------------------------------------------------------

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """Take over the last read, and end every claim that the rows just read speak of."""
        read, self._read = self._read, None
        if read is not None:
            self._judged = read.number
            self._take_over(read)
        self.note(found)
        for reservation in self._to_judge(now):
            claim = self._claims[reservation]
            if claim.since is None:
                continue
            if claim.since > self._judged:
                self._touched[reservation] = None
            elif claim.row is not None and self.end_of(reservation, now) is not None:
                own, foreign = CLOSE_OWN_AFTER_SECONDS, CLOSE_FOREIGN_AFTER_SECONDS
                self.over[claim.row.id] = now + (own if claim.written else foreign)
                self.release(reservation)
