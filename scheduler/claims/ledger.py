"""Writing claims: a compare-and-swap on the generation of every host, or nothing.

Requests that wait at the same time are written in one transaction.  Where hosts have moved on,
their rows are locked, what others claimed is counted, and those requests that still fit where they
were to go are booked all the same (docs/decisions/0007).
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import concurrency, errors, objects
from scheduler.claims import amounts, answers
from scheduler.claims.batches import Batches
from scheduler.claims.books import ClaimBooks, db_key
from scheduler.claims.register import utc
from scheduler.db import claims as claim_rows
from scheduler.db import rows
from scheduler.db.database import Database
from scheduler.db.write_session import WriteSession
from scheduler.hosts.books import Pick
from scheduler.hosts.table import Key

LOG = logging.getLogger(__name__)

#: How often a write is begun anew because a consumer got a claim after it was found to have none.
DUPLICATES_MET = 3

Selections = list[list[objects.Selection]]


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision, consumed on the table: the answer, and the picks behind it, per instance."""

    selections: Selections
    picks: Sequence[Pick]


class Outcome(enum.Enum):
    """What became of an entry."""

    BOOKED = "booked"
    #: Others took what was decided on.
    LOST = "lost"
    #: The same request was answered before.
    REPEATED = "repeated"


@dataclass(slots=True, eq=False)
class Entry:
    """One request to be booked; *again* decides once more on the hosts with these keys only."""

    request_id: str
    decided: Decided
    again: Callable[[Sequence[Key]], Decided]
    outcome: Outcome | None = None
    answer: Selections = field(default_factory=list)
    refusal: errors.NoValidHost | None = None

    @property
    def keys(self) -> list[Key]:
        """The hosts of its instances, in order."""
        return [pick.key for pick in self.decided.picks]


class _Moved(Exception):
    """A host is not at the generation that was expected."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The generations that a write made of its hosts', and the rows of its claims.

    No rows: the engine does not tell them; the next look finds them.
    """

    generations: dict[Key, int] = field(default_factory=dict)
    claims: Sequence[Any] = ()


class Ledger:
    """Books the decisions of one worker; *lock* is its decision lock."""

    def __init__(self, database: Database, books: ClaimBooks, lock: Any) -> None:
        self._database = database
        self._books = books
        self._lock = lock
        self._session = WriteSession(database)
        #: Whether hosts had moved on when they were locked last: then they are locked at once.
        self._is_contended = False
        self._write_with_others = Batches(self._write, concurrency.let_others_catch_up)

    def book(self, entry: Entry) -> Outcome:
        """Book all instances of *entry* or none; what is not booked is given back.

        Raises oslo.db's errors when the database does not answer.
        """
        try:
            self._write_with_others(entry)
        except BaseException:
            with self._lock:
                self._give_back(entry)
            raise
        if entry.outcome is None:
            raise RuntimeError("a claim was neither booked nor refused")
        return entry.outcome

    def wait(self) -> None:
        """Let the write that is under way come to its end.

        Who decides after it can come with all others into the next one, and knows what it found.
        """
        self._write_with_others.wait()

    def refuse(self, request_id: str, uuids: Sequence[str], refusal: errors.NoValidHost) -> bool:
        """Remember that the request gets no host; False if claims of its instances are known.

        Whoever gets it as well then answers the same.
        """
        text, now = answers.refusal_to_text(refusal), rows.utcnow()
        several = [claim_rows.refusal(uuid, request_id, text, now) for uuid in uuids]
        try:
            self._database.write_retrying(lambda conn: claim_rows.insert(conn, several))
        except db_exception.DBDuplicateEntry:
            return False
        return True

    def _give_back(self, entry: Entry) -> None:
        self._books.refused(entry.decided.picks)
        entry.decided = Decided(entry.decided.selections, ())

    # --- one write -----------------------------------------------------------------------

    def _write(self, batch: list[Entry]) -> None:
        self._know_hosts(batch)
        with self._lock:
            self._decide_again([each for each in batch if not self._is_valid(each)])
            live = _undecided(batch)
            expected = self._expected(live)
            is_first = not self._knows_claims(live)
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

    def _knows_claims(self, batch: list[Entry]) -> bool:
        """Whether a claim is known for one of the same instances, for this request or another."""
        return any(self._books.claim_of(each) is not None for each in self._consumers(batch))

    def _write_locked(self, batch: list[Entry], *, is_first: bool) -> None:
        for attempt in range(DUPLICATES_MET):
            looks = not is_first or attempt > 0
            try:
                self._commit(batch, functools.partial(self._swap_locked, batch=batch, looks=looks))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Another worker has just claimed for one of the same instances")
                continue
            return
        with self._lock:
            for entry in _undecided(batch):
                self._give_back(entry)
                entry.outcome = Outcome.LOST

    def _commit(self, batch: list[Entry], swap: Callable[[Connection], _Written]) -> None:
        try:
            written = self._session.run(swap)
        except db_exception.DBConnectionError:
            LOG.warning("The connection broke while claims were written; looking what is there")
            written = _Written()
            self._keep_what_is_there(batch)
        with self._lock:
            booked = [pick for each in _undecided(batch) for pick in each.decided.picks]
            self._books.booked(booked, written.generations, written.claims)
            for each in _undecided(batch):
                each.outcome = Outcome.BOOKED

    def _keep_what_is_there(self, batch: list[Entry]) -> None:
        """After a commit of unknown end: what was not written is lost."""
        with self._database.read() as connection:
            found = claim_rows.of_consumers(connection, self._consumers(batch))
        with self._lock:
            for entry in _undecided(batch):
                if not self._is_written(entry, found):
                    self._give_back(entry)
                    entry.outcome = Outcome.LOST

    def _is_written(self, entry: Entry, found: dict[str, Any]) -> bool:
        for pick in entry.decided.picks:
            row = found.get(self._books.promise_of(pick).consumer)
            if row is None or row.request_id != entry.request_id:
                return False
            if not _is_on(row, pick.key):
                return False
        return True

    # --- the two ways to swap ------------------------------------------------------------

    def _swap(self, conn: Connection, batch: list[Entry], expected: dict[Key, int]) -> _Written:
        if not claim_rows.compare_and_swap(conn, self._steps(batch, expected)):
            raise _Moved
        return self._insert(conn, batch, expected)

    def _swap_locked(self, conn: Connection, batch: list[Entry], *, looks: bool) -> _Written:
        """*looks*: for claims of the same instances; DBDuplicateEntry tells of them otherwise."""
        keys = sorted({key for each in _undecided(batch) for key in each.keys}, key=db_key)
        ids = {self._books.host_ids[key]: key for key in keys}
        held = claim_rows.lock_hosts(conn, ids)
        generations = {ids[number]: generation for number, generation in held.items()}
        known = {key: self._books.known.get(key, 0) for key in keys}
        moved = {key: known[key] for key in keys if generations[key] > known[key]}
        self._is_contended = bool(moved)
        after = {db_key(key): generation for key, generation in moved.items()}
        consumers = set(self._consumers(batch))
        found = claim_rows.made_after_or_of(conn, after, consumers) if moved or looks else ()
        existing = {row.consumer_uuid: row for row in found if row.consumer_uuid in consumers}
        given = {
            id(each): claim_rows.answered(conn, self._consumers([each]), each.request_id)
            for each in _undecided(batch)
            if existing.keys() & set(self._consumers([each]))
        }
        with self._lock:
            self._answer_repeated(batch, given)
            self._count(moved, found, generations, batch)
            live = _undecided(batch)
            self._decide_again([each for each in live if not self._is_valid(each)])
        live = _undecided(batch)
        if not live:
            return _Written()
        claim_rows.compare_and_swap(conn, self._steps(live, generations))
        replaced = [existing[each] for each in self._consumers(live) if each in existing]
        claim_rows.retire(conn, replaced, rows.utcnow())
        return self._insert(conn, live, generations)

    def _count(
        self,
        moved: dict[Key, int],
        found: Sequence[Any],
        generations: dict[Key, int],
        batch: list[Entry],
    ) -> None:
        """Count what others claimed; entries on hosts where that is not all to be seen are lost."""
        for key, known in moved.items():
            here = [row for row in found if _is_on(row, key) and row.generation > known]
            if self._books.learn_missing(key, here, generations[key]):
                continue
            for entry in _undecided(batch):
                if key in entry.keys:
                    self._give_back(entry)
                    entry.outcome = Outcome.LOST

    def _answer_repeated(self, batch: list[Entry], given: dict[int, dict[str, Any]]) -> None:
        for entry in _undecided(batch):
            found, consumers = given.get(id(entry), {}), self._consumers([entry])
            if not found or any(each not in found for each in consumers):
                continue
            self._give_back(entry)
            entry.outcome = Outcome.REPEATED
            try:
                entry.answer = [answers.of_text(found[each].answer) for each in consumers]
            except errors.NoValidHost as refusal:
                entry.refusal = refusal

    def _decide_again(self, entries: list[Entry]) -> None:
        """Decide on the hosts chosen before, now that more is known to be claimed on them."""
        keys = {id(entry): entry.keys for entry in entries}
        for entry in entries:
            self._give_back(entry)
        for entry in entries:
            try:
                entry.decided = entry.again(keys[id(entry)])
            except errors.NoValidHost:
                entry.outcome = Outcome.LOST

    # --- small parts ---------------------------------------------------------------------

    def _is_valid(self, entry: Entry) -> bool:
        return all(self._books.is_valid(pick) for pick in entry.decided.picks)

    def _expected(self, batch: list[Entry]) -> dict[Key, int]:
        return {key: self._books.known.get(key, 0) for each in batch for key in each.keys}

    def _consumers(self, batch: list[Entry]) -> list[str]:
        picks = [pick for each in _undecided(batch) for pick in each.decided.picks]
        return [self._books.promise_of(pick).consumer for pick in picks]

    def _steps(self, batch: list[Entry], generations: dict[Key, int]) -> dict[int, tuple[int, int]]:
        counts = Counter(key for each in batch for key in each.keys)
        return {
            self._books.host_ids[key]: (generations[key], count) for key, count in counts.items()
        }

    def _insert(
        self, conn: Connection, batch: list[Entry], generations: dict[Key, int]
    ) -> _Written:
        """Insert the claims of *batch*."""
        made = dict(generations)
        values = []
        for entry in batch:
            for pick, selections in zip(entry.decided.picks, entry.decided.selections, strict=True):
                made[pick.key] += 1
                values.append(self._values(entry, pick, selections, made[pick.key]))
        return _Written(made, claim_rows.insert(conn, values))

    def _values(
        self,
        entry: Entry,
        pick: Pick,
        selections: Sequence[objects.Selection],
        generation: int,
    ) -> dict[str, Any]:
        promise = self._books.promise_of(pick)
        host, node = db_key(pick.key)
        promise.written = (host, node, generation, entry.request_id)
        return {
            "consumer_uuid": promise.consumer,
            "host": host,
            "node": node,
            "generation": generation,
            **amounts.to_columns(pick.amount),
            "flavor_id": promise.pick.terms.flavor_id,
            "source_host": promise.pick.terms.source_host,
            "request_id": entry.request_id,
            "answer": answers.to_text(selections),
            "created_at": utc(promise.pick.terms.created_at),
            "expires_at": utc(promise.pick.terms.expires_at),
        }

    def _know_hosts(self, batch: list[Entry]) -> None:
        """Make sure that there is a generation to compare for every host."""
        known = self._books.host_ids
        missing = {key for each in batch for key in each.keys if key not in known}
        if missing:
            self.begin(missing)

    def begin(self, keys: Collection[Key]) -> None:
        """Begin to count the claims on hosts, as far as nobody does yet."""
        wanted = {db_key(key): key for key in keys}
        ids = self._ids_of(wanted)
        for some in rows.in_batches(sorted(wanted.keys() - ids.keys())):
            self._add(some)
        ids = self._ids_of(wanted)
        self._books.host_ids.update({key: ids[each] for each, key in wanted.items()})

    def _ids_of(self, wanted: Collection[claim_rows.Key]) -> dict[claim_rows.Key, int]:
        names = sorted({host for host, _node in wanted})
        ids = {}
        with self._database.read() as connection:
            for some in rows.in_batches(names):
                for row in claim_rows.hosts(connection, some):
                    ids[row.host, row.node] = row.id
        return ids

    def _add(self, keys: Collection[claim_rows.Key]) -> None:
        """Write the rows of hosts; where others do the same just now, what is left of them."""
        left = list(keys)
        while left:
            try:
                self._database.write_retrying(functools.partial(claim_rows.add, keys=left))
            except db_exception.DBDuplicateEntry:
                LOG.debug("Other workers have begun to count the claims on these hosts just now")
                left = sorted(set(left) - self._ids_of(left).keys())
            else:
                return


def _is_on(row: Any, key: Key) -> bool:
    return (row.host, row.node) == db_key(key)


def _undecided(batch: list[Entry]) -> list[Entry]:
    return [entry for entry in batch if entry.outcome is None]
