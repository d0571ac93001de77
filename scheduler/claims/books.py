"""The books of a worker whose promises stand in a database, together with everybody's.

Open claims, whoever made them, are picks on the rows of the host table.  ``view`` counts the
foreign claims that were ever seen on a host: a decision is valid as long as it does not move
(docs/decisions/0007).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import Any

from scheduler.claims import amounts
from scheduler.claims.promise import Promise
from scheduler.claims.register import Look, Register
from scheduler.db import claims as claim_rows
from scheduler.hosts import evidence
from scheduler.hosts.books import Books, Pick, TrackedInstance
from scheduler.hosts.fitting import Fitting
from scheduler.hosts.table import HostTable, Key

#: How the names begin that stand for instances which a request did not name.
UNNAMED = "unnamed-"
OWN_TOLD_AFTER_SECONDS = 2.0
#: Whoever made a claim closes it; if that worker is gone, any other does a little later.
FOREIGN_TOLD_AFTER_SECONDS = 15.0
NEVER_TOLD = float("inf")
#: What shows that a host has reported something else than before.
REPORTED = ("updated_at", "free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances")


def db_key(key: Key) -> claim_rows.Key:
    """The key of a host as the tables have it."""
    return key[0], key[1] or ""


class ClaimBooks(Books):
    """Picks of this worker and claims of all others, on one table.

    *expiry_seconds* is how long a claim stands whose instance shows up nowhere.
    """

    def __init__(
        self,
        table: HostTable,
        register: Register,
        fitting: Fitting,
        expiry_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(table, expiry_seconds)
        self.clock = clock
        self._judged = 0
        self._register = register
        #: Generation of each host up to which every claim is counted, and how many are our own.
        self.known: dict[Key, int] = {}
        self.host_ids: dict[Key, int] = {}
        #: Generations met when a claim was refused, to be known after the next full read.
        self.held: dict[Key, int] = {}
        #: Claims that are over as this worker sees it: when everybody is to be told.
        self.over: dict[int, float] = {}
        self._own: dict[Key, int] = {}
        self._fitting = fitting
        self._promises: dict[Pick, Promise] = {}
        self._of_id: dict[int, Promise] = {}
        self._of_consumer: dict[str, Promise] = {}
        #: The last report of each host that something was promised on, and the look it came with.
        self._reports: dict[Key, tuple[Any, ...]] = {}
        self._renewed: dict[Key, int] = {}
        #: Claims whose generations are not known yet, and those that were closed when met.
        self._unconfirmed: set[int] = set()
        self._met_closed: set[int] = set()
        self._look: Look | None = None
        self._waiting: dict[str, list[Promise]] = {}

    # --- decisions -----------------------------------------------------------------------

    def view(self, key: Key) -> int:
        """How many foreign claims on the host this worker has counted."""
        return self.known.get(key, 0) - self._own.get(key, 0)

    def _promise(self, pick: Pick, name: str | None) -> None:
        """A claim is to be made of *pick*."""
        consumer = name or f"{UNNAMED}{secrets.token_hex(8)}"
        promise = Promise(pick, consumer, view=self.view(pick.key))
        self._promises[pick] = promise
        self._waiting.setdefault(consumer, []).append(promise)

    def confirm(self, picks: Iterable[Pick]) -> None:
        """Nothing yet: a decision stands when it is booked."""

    def promise_of(self, pick: Pick) -> Promise:
        """What is promised with *pick*."""
        return self._promises[pick]

    def doubtful(self) -> list[Pick]:
        """Picks that perhaps take nothing: not booked yet, or counted by the report, too.

        A report may count an instance that had not arrived when the instances were read before
        it; and one that has arrived, but whose row does not say yet that it is counted.
        """
        return [pick for pick, promise in self._promises.items() if self._is_doubtful(promise)]

    def _is_doubtful(self, promise: Promise) -> bool:
        pick = promise.pick
        if promise.since is None or promise.since >= self._judged:
            return True
        if self._renewed.get(pick.key, 0) >= self._judged:
            return True
        return pick.instance is not None and pick.instance.host == pick.key[0]

    def reapply(self, key: Key) -> None:
        """See the base class; notes which reports have changed."""
        if key in self._picks:
            row = self.table.rows[key]
            report = tuple(self.table.value(row, name) for name in REPORTED)
            if self._reports.get(key) != report:
                self._reports[key] = report
                self._renewed[key] = self.looks
        super().reapply(key)

    def forget_strangers(self) -> None:
        """See the base class; hosts that something is promised on are no strangers."""
        for known in (self._own, self._reports, self._renewed):
            for key in known.keys() - self.table.rows.keys() - self._picks.keys():
                del known[key]

    def claim_of(self, consumer: str) -> Any:
        """The row of the open claim of *consumer*, None where none is known."""
        promise = self._of_consumer.get(consumer)
        return None if promise is None else promise.row

    def is_valid(self, pick: Pick) -> bool:
        """Whether all that is known to be claimed on the host was known to the decision."""
        return self._promises[pick].view == self.view(pick.key)

    def undo(self, pick: Pick) -> None:
        """See the base class."""
        super().undo(pick)
        promise = self._promises.pop(pick)
        if promise.row is None:
            self._no_longer_waits(promise)
        else:
            self._of_id.pop(promise.row.id, None)
            self._unconfirmed.discard(promise.row.id)
            self._met_closed.discard(promise.row.id)
            if self._of_consumer.get(promise.consumer) is promise:
                del self._of_consumer[promise.consumer]

    def _no_longer_waits(self, promise: Promise) -> None:
        self._waiting[promise.consumer].remove(promise)
        if not self._waiting[promise.consumer]:
            del self._waiting[promise.consumer]

    def booked(
        self, picks: Sequence[Pick], generations: dict[Key, int], claims: Sequence[Any] = ()
    ) -> None:
        """*picks* are in the database, *generations* are what they made of their hosts'.

        *claims* are their rows, as far as they were told; the next look finds the others.
        """
        for pick in picks:
            promise = self._promises[pick]
            self._drop_replaced(promise)
            promise.since = self.looks + 1
            self._touched[pick] = None
            if promise.row is None:
                self._own[pick.key] = self._own.get(pick.key, 0) + 1
        for key, generation in generations.items():
            self.known[key] = max(self.known.get(key, 0), generation)
        for row in claims:
            self.learn(row)

    def _drop_replaced(self, promise: Promise) -> None:
        earlier = self._of_consumer.get(promise.consumer)
        if earlier is not None and earlier is not promise:
            self.over[earlier.row.id] = NEVER_TOLD
            self.undo(earlier.pick)
        placeholder = promise.pick.placeholder
        if placeholder and placeholder.uuid not in self.table.host_of_instance:
            self.table.put_instance(promise.pick.key[0], placeholder.uuid, placeholder)

    def refused(self, picks: Sequence[Pick]) -> None:
        """*picks* are not booked: they are given back; claims found in their place count."""
        for pick in reversed(picks):
            row = self._promises[pick].row
            self.undo(pick)
            if row is not None:
                self._own[pick.key] = self._own.get(pick.key, 0) - 1
                self.learn(row)

    # --- claims of all -------------------------------------------------------------------

    @property
    def looks(self) -> int:
        """How many looks have begun."""
        return self._register.looks

    def look(self) -> None:
        """Look at the claims; what was seen is taken over by the next call of ``settle``."""
        now = self.clock()
        ids = self.to_close(now)
        if self._register.close(ids, now):
            self.closed(ids)
        self._register.purge(now)
        self._look = self._register.look(
            now, lambda: self._of_id.keys() | self.over.keys(), self.held
        )

    def glance(self) -> Look:
        """Look at the claims without a following read of reports; for ``take_new``."""
        return self._register.glance(self.clock())

    def learn(self, row: Any, look: Look | None = None) -> None:
        """Count the claim of *row*, unless it is counted; it was found by *look*, or since.

        One that is closed counts until the next look: the report may not have caught up with it.
        """
        if row.id in self._of_id or row.id in self.over:
            return
        pending = self._pending_of(row)
        if pending is not None:
            self._adopt(pending, row)
            return
        key = self._key_of(row)
        is_named = not row.consumer_uuid.startswith(UNNAMED)
        pick = Pick(
            key,
            amounts.of_row(row, self._fitting),
            evidence.terms_of(row, key),
            row.consumer_uuid if is_named else None,
            TrackedInstance(row.consumer_uuid, *key, instance_type_id=row.flavor_id),
        )
        self.add(pick)
        promise = Promise(pick, row.consumer_uuid)
        # A look that is under way may have been too early for it.
        promise.since = self.looks + 1 if look is None else look.number
        self._promises[pick] = promise
        self._attach(promise, row)

    def _pending_of(self, row: Any) -> Promise | None:
        for promise in self._waiting.get(row.consumer_uuid, ()):
            if promise.written == (row.host, row.node, row.generation, row.request_id):
                return promise
        return None

    def _adopt(self, promise: Promise, row: Any) -> None:
        """A pick of ours turned out to be in the database."""
        self._no_longer_waits(promise)
        self._attach(promise, row)
        if promise.since is None:
            key = promise.pick.key
            self._own[key] = self._own.get(key, 0) + 1

    def _attach(self, promise: Promise, row: Any) -> None:
        promise.row = row
        self._touched[promise.pick] = None
        self._register.seen.note({row.id}, self.clock())
        self._unconfirmed.add(row.id)
        if row.closed_at is not None:
            self._met_closed.add(row.id)
        self._of_id[row.id] = promise
        self._of_consumer[promise.consumer] = promise

    def _key_of(self, row: Any) -> Key:
        if not row.node and (row.host, "") not in self.table.rows:
            return row.host, None
        return row.host, row.node

    def take_new(self, look: Look) -> None:
        """Count the claims that came, and none less: the reports may be older than the look."""
        self._count_rows(look, with_closed=False)

    def _count_rows(self, look: Look, *, with_closed: bool) -> None:
        """Count the open claims of *look*, and know the generations that follow the known ones.

        Closed ones are in the reports, if these were read after the look: *with_closed*.
        """
        self._register.seen.note({row.id for row in look.rows}, look.at)
        rows = [row for row in look.rows if row.host != claim_rows.NO_HOST]
        for row in sorted(rows, key=lambda each: each.generation):
            if row.closed_at is None:
                self.learn(row, look if with_closed else None)
            key = self._key_of(row)
            known = self.known.get(key, 0)
            if row.generation == known + 1 and (with_closed or row.closed_at is None):
                self.known[key] = row.generation
            elif row.generation > known:
                self._register.want_all()

    def _take_over(self, look: Look) -> None:
        """Count what *look* found; the reports of all hosts were read after it."""
        self._register.taken(look)
        if look.open_ids is None:
            self._count_rows(look, with_closed=True)
            gone = self._of_id.keys() & (look.closed_ids | self._met_closed)
            over = self.over.keys() & look.closed_ids
        else:
            self._count_all(look, look.open_ids)
            gone = self._of_id.keys() - look.open_ids
            over = self.over.keys() - look.open_ids
        self._undo_known([self._of_id[number] for number in gone], look)
        for number in over:
            del self.over[number]

    def _count_all(self, look: Look, open_ids: Set[int]) -> None:
        for row in look.rows:
            self.learn(row, look)
        for generations in (look.held, {self._key_of(row): row.generation for row in look.hosts}):
            for key, generation in generations.items():
                self.known[key] = max(self.known.get(key, 0), generation)
                if self.held.get(key, generation) <= generation:
                    self.held.pop(key, None)
        for row in look.hosts:
            self.host_ids[self._key_of(row)] = row.id
        self._confirm(open_ids)
        waiting = [promise for several in self._waiting.values() for promise in several]
        self._undo_known(waiting, look)

    def _confirm(self, open_ids: Set[int]) -> None:
        """Know the generations of the claims that a look at all has seen."""
        for number in self._unconfirmed & open_ids:
            promise = self._of_id[number]
            key, generation = promise.pick.key, promise.row.generation
            self.known[key] = max(self.known.get(key, 0), generation)
        self._unconfirmed -= open_ids

    def _undo_known(self, promises: Iterable[Promise], look: Look) -> None:
        """Give back *promises*, which *look* does not show, as far as they were known before it."""
        for promise in promises:
            if promise.since is not None and promise.since <= look.number:
                self.undo(promise.pick)

    def learn_missing(self, key: Key, found: Sequence[Any], generation: int) -> bool:
        """Count the claims *found* on the host; whether that is all up to *generation*."""
        for row in found:
            self.learn(row)
        first = self.known.get(key, 0) + 1
        seen = {row.generation for row in found if first <= row.generation <= generation}
        if len(seen) > generation - first:
            self.known[key] = max(self.known.get(key, 0), generation)
            return True
        self.held[key] = max(self.held.get(key, 0), generation)
        return False

    # --- the end of claims ---------------------------------------------------------------

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """Take over the last look, and end every claim that the rows just read speak of."""
        look, self._look = self._look, None
        if look is not None:
            self._judged = look.number
            self._take_over(look)
        self.note(found)
        for pick in self._to_judge(now):
            promise = self._promises[pick]
            if promise.since is None:
                continue
            if promise.since <= self._judged:
                self._end_if_over(promise, now)
            else:
                self._touched[pick] = None

    def _end_if_over(self, promise: Promise, now: float) -> None:
        if promise.row is not None and self.end_of(promise.pick, now) is not None:
            delay = OWN_TOLD_AFTER_SECONDS if promise.written else FOREIGN_TOLD_AFTER_SECONDS
            self.over[promise.row.id] = now + delay
            self.undo(promise.pick)

    def to_close(self, now: float) -> list[int]:
        """Ids of the claims that are over and not closed in the database yet, once they are due."""
        return [number for number, due_at in self.over.items() if due_at <= now]

    def closed(self, ids: Collection[int]) -> None:
        """The claims *ids* are closed in the database."""
        self.over.update(dict.fromkeys(self.over.keys() & set(ids), NEVER_TOLD))
