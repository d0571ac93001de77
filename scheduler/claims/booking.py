"""The seam between a driver that decides and whoever keeps the promises.

A driver hands over how to decide; what comes back is an answer that is booked, if anything books.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors, objects
from scheduler.claims import answers
from scheduler.claims.books import ClaimBooks
from scheduler.claims.ledger import Decided, Entry, Ledger, Outcome, Selections
from scheduler.db import claims as claim_rows
from scheduler.db.database import FAILURES, Database
from scheduler.hosts.shared_refresh import SharedRefresh
from scheduler.hosts.table import Key

LOG = logging.getLogger(__name__)

#: How often a request is decided anew because others were faster.
ATTEMPTS = 50
#: How often one that finds no host looks, and how long it waits in between, while it is in doubt
#: whether all promises that are in its way take something of their hosts.
LOOKS_WITHOUT_HOST = 20
PAUSES_SECONDS = (0.01, 0.02, 0.05, 0.1)


class Attempt(Protocol):
    """One request to a driver: what it is, and how to decide it once."""

    @property
    def request_id(self) -> str | None:
        """What only this request has, however often it is delivered; None if nothing."""

    @property
    def context(self) -> Any:
        """The context of its sender."""

    @property
    def spec(self) -> objects.RequestSpec:
        """What is asked; not to be changed."""

    @property
    def instance_uuids(self) -> Sequence[str]:
        """The instances that it names."""

    @property
    def needs_claims(self) -> bool:
        """Whether it is to take anything of its hosts."""

    @property
    def is_redelivered(self) -> bool:
        """Whether another worker may have begun with it, and still be at it."""

    def note_claim(self, outcome: str) -> None:
        """What became of claiming what was decided last: the value of an Outcome."""

    def refresh(self) -> None:
        """Bring the state up to date."""

    def refresh_all(self) -> None:
        """Read the reports of all hosts anew."""

    def decide(
        self, only: Sequence[Key] | None = None, offered: Mapping[str, int | None] | None = None
    ) -> Decided:
        """Decide on all hosts, or *only* on some; raises NoValidHost.

        *offered* are the uuids of the nodes to choose from, each with the most instances of the
        request that it may get (None: any number).  What is decided is consumed on the table,
        under the decision lock.
        """

    def selection_on(self, node_uuid: str) -> objects.Selection | None:
        """What an answer says of the host with that node, without deciding; None if unknown."""


class Booking:
    """Books nothing: the compute node has the last word, as with Nova before Placement."""

    needs_regular_looks: ClassVar[bool] = False
    """Whether the state must be read now and then, also when nobody asks for hosts."""

    needs_database: ClassVar[bool] = False
    """Whether nothing can be answered while the database is away."""

    def bring_up_to_date(self) -> None:
        """See what others have promised, without reading what the hosts report: nothing."""

    def prepare(self) -> None:
        """Make ready what requests would otherwise wait for: nothing."""

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """What puts the part of *conf* in force that is about booking: nothing."""
        del conf
        return lambda: None

    def answer(self, attempt: Attempt) -> Selections:
        """The answer to one request."""
        attempt.refresh()
        return attempt.decide().selections


class DatabaseBooking(Booking):
    """Books every answer as claims in *database* before it is given."""

    needs_regular_looks = needs_database = True

    def __init__(self, database: Database, books: ClaimBooks, lock: Any) -> None:
        self._database = database
        self._books = books
        self._lock = lock
        self.ledger = Ledger(database, books, lock)
        self._glance = SharedRefresh(self._take_new)
        self.pause: Callable[[float], None] = time.sleep

    def bring_up_to_date(self) -> None:
        """Count what others have claimed since the hosts' reports were read."""
        self._call(self._glance)

    def prepare(self) -> None:
        """Begin to count the claims on every host."""
        with self._lock:
            missing = self._books.table.rows.keys() - self._books.host_ids.keys()
        self._call(self.ledger.begin, missing)

    def _take_new(self) -> None:
        look = self._books.glance()
        with self._lock:
            self._books.take_new(look)

    def answer(self, attempt: Attempt) -> Selections:
        """The answer to one request, booked; or the one that was given to it before.

        Raises NoValidHost; ClaimConflict when others were always faster; StateUnavailable when
        nothing can be booked at present.
        """
        if not attempt.needs_claims:
            return self._unbooked(attempt)
        self.ledger.wait()
        attempt.refresh()
        try:
            return self._booked(attempt)
        except (errors.NoValidHost, errors.ClaimConflict) as error:
            # Another worker may have given the last host to this very request meanwhile.
            given = self._call(self._given_or_refused, attempt, error)
            if given is None:
                raise
            return given

    def _given_or_refused(self, attempt: Attempt, error: errors.NovaException) -> Selections | None:
        """The answer given to the request before; None if from now on it is refused."""
        given = self._given_before(attempt)
        uuids, own = attempt.instance_uuids, attempt.request_id
        if given is not None or not uuids or not own or not isinstance(error, errors.NoValidHost):
            return given
        return None if self.ledger.refuse(own, uuids, error) else self._given_before(attempt)

    def _booked(self, attempt: Attempt) -> Selections:
        for _number in range(ATTEMPTS):
            entry = self.decided(attempt)
            if entry is None:
                given = self._call(self._given_before, attempt)
                if given is not None:
                    attempt.note_claim(Outcome.REPEATED.value)
                    return given
                attempt.refresh_all()
                continue
            outcome = self._call(self.ledger.book, entry)
            attempt.note_claim(outcome.value)
            if outcome is Outcome.BOOKED:
                return entry.decided.selections
            if outcome is Outcome.REPEATED:
                if entry.refusal is not None:
                    raise entry.refusal
                return entry.answer
            attempt.refresh_all()
            LOG.debug("Others have claimed what was chosen for %s", attempt.instance_uuids)
        raise errors.ClaimConflict(attempts=ATTEMPTS)

    def _unbooked(self, attempt: Attempt) -> Selections:
        attempt.refresh()
        with self._lock:
            decided = attempt.decide()
            self._books.refused(decided.picks)
        return decided.selections

    def decided(self, attempt: Attempt) -> Entry | None:
        """A decision to be booked; None if the request is known to be answered already."""
        for look in range(LOOKS_WITHOUT_HOST):
            with self._lock:
                if self._is_answered(attempt):
                    return None
                try:
                    return _entry(attempt, attempt.decide())
                except errors.NoValidHost:
                    if look == LOOKS_WITHOUT_HOST - 1 or not self._may_fit(attempt):
                        raise
            self.pause(PAUSES_SECONDS[min(look, len(PAUSES_SECONDS) - 1)])
            attempt.refresh_all()
        raise AssertionError("the last look raises")

    def _may_fit(self, attempt: Attempt) -> bool:
        """Whether the request fits if nothing doubtful takes anything."""
        doubtful = self._books.doubtful()
        if not doubtful:
            return False
        with self._books.without(doubtful):
            try:
                decided = attempt.decide(tuple(self._books.table.rows))
            except errors.NoValidHost:
                return False
            self._books.refused(decided.picks)
        return True

    def _is_answered(self, attempt: Attempt) -> bool:
        uuids = attempt.instance_uuids
        rows = [self._books.claim_of(uuid) for uuid in uuids]
        return bool(uuids) and all(
            row is not None and row.request_id == attempt.request_id for row in rows
        )

    def _given_before(self, attempt: Attempt) -> Selections | None:
        """The answer that the claims of the request hold; None if there are none, or no more.

        Raises NoValidHost if it was that.
        """
        uuids, own = attempt.instance_uuids, attempt.request_id
        if not uuids or not own:
            return None
        with self._database.read() as connection:
            found = claim_rows.answered(connection, uuids, own)
        if any(uuid not in found for uuid in uuids):
            return None
        return [answers.of_text(found[uuid].answer) for uuid in uuids]

    @staticmethod
    def _call(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except FAILURES as error:
            LOG.error("Hosts cannot be claimed: %s", error)
            raise errors.StateUnavailable(reason="hosts cannot be claimed") from error


def _entry(attempt: Attempt, decided: Decided) -> Entry:
    """What is to be booked; where hosts must be looked at again, the first alternates stay."""
    first = decided.selections

    def again(keys: Sequence[Key]) -> Decided:
        later = attempt.decide(keys)
        chosen = {(each.service_host, each.nodename) for each, *_others in later.selections}
        merged = [
            [new[0], *(each for each in old[1:] if _key(each) not in chosen)]
            for new, old in zip(later.selections, first, strict=True)
        ]
        return Decided(merged, later.picks)

    # Without an id of its own no request is ever the same as another one.
    return Entry(attempt.request_id or uuidutils.generate_uuid(), decided, again)


def _key(selection: objects.Selection) -> Key:
    return selection.service_host, selection.nodename
