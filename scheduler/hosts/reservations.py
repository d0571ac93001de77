"""Reservations: what decisions took of hosts that the hosts do not report yet.

A reservation stays subtracted from its host's row until the host's report includes the instance,
the instance is elsewhere or gone, or it expires.  Those of a failed request end at once.
"""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import numa
from scheduler.hosts import instances
from scheduler.hosts.columns import ADDED_BY_RESERVATIONS, CHANGED_BY_RESERVATIONS, NEVER
from scheduler.hosts.host_state import Consumption, consume
from scheduler.hosts.instances import End, Terms, TrackedInstance
from scheduler.hosts.table import HostTable, Key

#: A reservation whose instance never shows up anywhere ends after this long.
EXPIRY_SECONDS = 120.0


@dataclass(slots=True, eq=False)
class Reservation:
    """The place of one instance on one host."""

    key: Key
    amount: Consumption
    terms: Terms
    #: The instance's uuid, if the request named it.
    uuid: str | None
    #: Shown in the instance's place on its host until the instance itself is there.
    placeholder: TrackedInstance | None
    #: Where its cells and devices are in the row as it is now, if it wants any.
    hardware: numa.Placement | None = None
    #: The instance's row, once one was read.
    instance: Any = None
    #: Its claim, as the back end knows it.
    claim: Any = None

    @property
    def last_second(self) -> int:
        """The second in which it expires, the first of all where its claim does not say when."""
        return int(max(self.terms.expires_at, 0.0))


class Reservations:
    """The reservations on the rows of one table, on top of what the hosts reported."""

    def __init__(self, table: HostTable, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self.table = table
        self.expiry_seconds = expiry_seconds
        self._of_key: dict[Key, dict[Reservation, None]] = {}
        self._of_uuid: dict[str | None, dict[Reservation, None]] = {}
        #: Those that something was read of since they were judged, in order.
        self._touched: dict[Reservation, None] = {}
        #: By second since the epoch those that expire within it.
        self._expiring: dict[int, dict[Reservation, None]] = {}
        #: Values of the rows with reservations, without these.
        self._reported: dict[Key, dict[str, Any]] = {}
        self._left_out: Collection[Reservation] = ()

    def __iter__(self) -> Iterator[Reservation]:
        return (each for several in self._of_key.values() for each in several)

    def copy(self, table: HostTable) -> "Reservations":
        """The same reservations on *table*, a copy of this table, kept by this process alone."""
        twin = Reservations(table, self.expiry_seconds)
        for each in self:
            twin._keep(copied := dataclasses.replace(each))
            if each in self._touched:
                twin._touched[copied] = None
        twin._reported = {key: dict(values) for key, values in self._reported.items()}
        return twin

    def on(self, key: Key) -> tuple[Reservation, ...]:
        """The reservations on the row of *key*, in the order in which they were made."""
        return tuple(self._of_key.get(key, ()))

    def of(self, uuids: Iterable[str | None]) -> list[Reservation]:
        """The reservations of the instances with these *uuids*, made by earlier decisions."""
        return [each for uuid in uuids if uuid for each in self._of_uuid.get(uuid, ())]

    def uuids(self) -> Set[str | None]:
        return self._of_uuid.keys()

    # --- what subclasses do otherwise ----------------------------------------------------

    def read_claims(self) -> None:
        """Read, before rows are, the claims of others: there are none, here.

        This may do I/O; the decision lock is not held.
        """

    def take_claims(self) -> None:
        """Count the claims that were read: there are none, here."""

    def needs_read(self) -> bool:
        """True when the state is to be read although no request waits for it."""
        return False

    def accepts(self, key: Key, updated_at: float) -> bool:
        """True when a row of *key* just read, last written at *updated_at*, replaces the known one.

        A report always does; the reservations are subtracted from it again.
        """
        return True

    def claimable(self, rows: np.ndarray) -> np.ndarray:
        """Mask of the *rows* that may be chosen: not those that their host never filled in."""
        return self.table.column("reported")[rows]

    def _reserved(self, reservation: Reservation, name: str | None) -> None:
        """Take note of a decision's *reservation* for the instance of that *name*."""

    # --- decisions -----------------------------------------------------------------------

    def reserve(
        self,
        rows: Sequence[int],
        names: Sequence[tuple[str | None, str | None]],
        amount: Consumption,
        now: float,
        flavor_id: int | None = None,
    ) -> list[Reservation]:
        """Subtract *amount* from each of *rows*, for the instance of the same place in *names*.

        A name is the instance's uuid; one without is shown on its host under the stand-in that
        follows, if any.  Of several rows none is bare metal, and *amount* has no wish.
        """
        several, expires_at = [], now + self.expiry_seconds
        for row, (uuid, stand_in) in zip(rows, names, strict=True):
            host, node = self.table.keys[row]
            name, placeholder = uuid or stand_in, None
            if name:
                placeholder = TrackedInstance(name, host, node, None, None, flavor_id)
            terms = Terms(host, node, self.home_of(uuid), flavor_id, now, expires_at)
            several.append(Reservation((host, node), amount, terms, uuid, placeholder))
        if len(several) == 1:
            self._take(several[0], rows[0])
        else:
            for made, row in zip(several, rows, strict=True):
                self._keep_report(made.key, row, amount)
            self.table.add(rows, amount.added)
        for made, (uuid, stand_in) in zip(several, names, strict=True):
            self._keep(made)
            self._show(made)
            self._reserved(made, uuid or stand_in)
        return several

    def home_of(self, uuid: str | None) -> str | None:
        """The host that the instance is to leave; None for one that is being placed or built."""
        home = self.table.host_of_instance.get(uuid or "")
        if home is None:
            return None
        instance = self.table.instances[home][uuid or ""]
        return None if instance.vm_state in (None, instances.BUILDING) else home

    def add(self, reservation: Reservation) -> None:
        """Subtract *reservation* from its host's row, if there is one yet, and keep it."""
        row = self.table.rows.get(reservation.key)
        if row is not None:
            self._take(reservation, row)
        self._keep(reservation)
        self._show(reservation)

    def take_over(self, reservation: Reservation) -> None:
        """Keep *reservation*, whose amount the report of its host has already: no more of it."""
        added = reservation.amount.added
        self.table.add([self.table.rows[reservation.key]], added, -1)
        for name in self._reported.get(reservation.key, {}).keys() & added.keys():
            self._reported[reservation.key][name] -= added[name]
        self.add(reservation)

    def _take(self, reservation: Reservation, row: int) -> None:
        self._keep_report(reservation.key, row, reservation.amount)
        reservation.hardware = consume(self.table, row, reservation.amount)

    def _keep_report(self, key: Key, row: int, amount: Consumption) -> None:
        """Keep what *amount* is going to change; documents only where it wants cells or devices."""
        reported = self._reported.get(key)
        if reported is None:
            value = self.table.value
            reported = {name: value(row, name) for name in ADDED_BY_RESERVATIONS}
            self._reported[key] = reported
        if amount.wish is not None and not reported.keys() & CHANGED_BY_RESERVATIONS:
            for name in CHANGED_BY_RESERVATIONS:
                reported[name] = self.table.content(row, name)

    def _keep(self, reservation: Reservation) -> None:
        self._expiring.setdefault(reservation.last_second, {})[reservation] = None
        self._of_key.setdefault(reservation.key, {})[reservation] = None
        if reservation.uuid:
            self._of_uuid.setdefault(reservation.uuid, {})[reservation] = None

    def _show(self, reservation: Reservation) -> None:
        """Show its placeholder on its host, unless the instance is on some host already."""
        placeholder = reservation.placeholder
        if placeholder and placeholder.uuid not in self.table.host_of_instance:
            self.table.put_instance(reservation.key[0], placeholder.uuid, placeholder)
        self._note_hosts(reservation.uuid)

    def _note_hosts(self, uuid: str | None) -> None:
        """Let the instance count where it has reservations, also while it is elsewhere."""
        self.table.reserved_hosts.pop(uuid or "", None)
        if several := self.of([uuid]):
            self.table.reserved_hosts[uuid or ""] = {each.key[0] for each in several}

    def release(self, reservation: Reservation) -> None:
        """Give back what *reservation* took, and forget it.

        Those that found their cells and devices after it find them anew.
        """
        row = self.table.rows.get(reservation.key)
        if row is not None:
            if reservation.amount.wish is not None or self.table.column("bare_metal")[row]:
                self._take_again(reservation.key, reservation)
            else:
                self.table.add([row], reservation.amount.added, -1)
        self._forget(reservation)

    def release_all(self, several: Sequence[Reservation]) -> None:
        for each in reversed(several):
            self.release(each)

    def change(self, reservation: Reservation, wish: numa.Wish) -> None:
        """Let *reservation* take the cells and devices of another *wish*."""
        reservation.amount = dataclasses.replace(reservation.amount, wish=wish)
        if reservation.key in self.table.rows:
            self._take_again(reservation.key)

    def _take_again(self, key: Key, released: Reservation | None = None) -> None:
        """Start from the report, and take everything but the one *released* anew, in order."""
        row = self.table.rows[key]
        self.table.update(row, self._reported.get(key, {}))
        for each in self._of_key[key]:
            if each is not released and each not in self._left_out:
                each.hardware = consume(self.table, row, each.amount)

    def _forget(self, reservation: Reservation) -> None:
        drop(self._of_key, reservation.key, reservation)
        if reservation.uuid:
            drop(self._of_uuid, reservation.uuid, reservation)
            self._note_hosts(reservation.uuid)
        drop(self._expiring, reservation.last_second, reservation)
        self._touched.pop(reservation, None)
        if reservation.key not in self._of_key:
            self._reported.pop(reservation.key, None)
        placeholder = reservation.placeholder
        if placeholder is not None:
            uuid = placeholder.uuid
            if self.table.instances.get(reservation.key[0], {}).get(uuid) is placeholder:
                self.table.drop_instance(uuid)

    def confirm(self, reservations: Iterable[Reservation]) -> None:
        """Let the *reservations* of a decision replace earlier ones of the same instances."""
        for reservation in reservations:
            known = self._of_uuid.get(reservation.uuid, ())
            if len(known) > 1:
                for earlier in [each for each in known if each is not reservation]:
                    self.release(earlier)
                self._show(reservation)

    @contextlib.contextmanager
    def without(self, reservations: Collection[Reservation]) -> Iterator[None]:
        """The table as if *reservations* took nothing, until the end of the block."""
        keys, before = {each.key for each in reservations} & self.table.rows.keys(), self._left_out
        self._left_out = frozenset((*before, *reservations))
        for key in keys:
            self._take_again(key)
        try:
            yield
        finally:
            self._left_out = before
            for key in keys:
                self._take_again(key)

    # --- reads ---------------------------------------------------------------------------

    def reapply(self, key: Key) -> None:
        """Subtract the reservations again after the row of *key* was read from the database."""
        self._reported.pop(key, None)
        for each in self._of_key.get(key, ()):
            self._take(each, self.table.rows[key])
        self._touched.update(self._of_key.get(key, {}))

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """End every reservation that the state just read has caught up with.

        *found* are the rows of instances that were read.
        """
        self.note(found)
        for reservation in self._to_judge(now):
            if self.end_of(reservation, now) is not None:
                self.release(reservation)

    def note(self, found: Sequence[Any]) -> None:
        """Remember the rows *found* that are of instances with a reservation."""
        for row in found:
            for reservation in self._of_uuid.get(row.uuid, ()):
                if reservation.instance is not row:
                    reservation.instance = row
                    self._touched[reservation] = None

    def _to_judge(self, now: float) -> Iterable[Reservation]:
        """Those that may be over: all others are as they were when judged last."""
        several, self._touched = self._touched, {}
        for second in [each for each in self._expiring if each <= now]:
            several.update(self._expiring[second])
        return several

    def end_of(self, reservation: Reservation, now: float) -> End | None:
        """Reason why *reservation* is over, by the rows read so far; None if it is not."""
        row = self.table.rows.get(reservation.key)
        reported_at = NEVER if row is None else self.table.value(row, "updated_at")
        terms = reservation.terms
        end = instances.end_of(terms, reservation.instance, reported_at, now)
        if end is None and reservation.uuid is None and reported_at > terms.created_at:
            end = End.REPORTED  # nobody can tell whether an instance without a name has arrived
        return end


class NewtonReservations(Reservations):
    """Reservations as Newton keeps them: taken until the host reports.

    A row is ignored while it is older than the last reservation on it.  What a failed request took
    stays taken, too, but the hosts it touched take the next row, however old (reference page
    scheduling, sections 2.2, 5.3 and 6.3).
    """

    def accepts(self, key: Key, updated_at: float) -> bool:
        """Not older rows, but those that were never written, and every row of bare metal."""
        row = self.table.rows.get(key)
        if row is None or key[0] not in self.table.services or updated_at == NEVER:
            return True
        is_metal = self.table.value(row, "bare_metal")
        return bool(is_metal or self.table.value(row, "updated_at") <= updated_at)

    def claimable(self, rows: np.ndarray) -> np.ndarray:
        """Every row: there are no claims that could fail."""
        return np.ones(len(rows), dtype=np.bool_)

    def _show(self, reservation: Reservation) -> None:
        """Nothing: no instance is seen on its host before the host says so."""

    def _reserved(self, reservation: Reservation, name: str | None) -> None:
        """Ignore older rows from now on, unless it did not get all that it wants."""
        if reservation.hardware is None or reservation.hardware.error is None:
            row = self.table.rows[reservation.key]
            self.table.update(row, {"updated_at": reservation.terms.created_at})

    def release(self, reservation: Reservation) -> None:
        """Give nothing back, and believe whatever row is read next."""
        self._forget(reservation)
        row = self.table.rows.get(reservation.key)
        if row is not None:
            self.table.update(row, {"updated_at": NEVER})

    def confirm(self, reservations: Iterable[Reservation]) -> None:
        """Forget them: they are part of the rows now."""
        for each in reservations:
            self._forget(each)


def drop(sets: dict[Any, dict[Any, None]], key: Any, one: Any) -> None:
    """Take *one* out of the set of *key*, and an empty set out of *sets*."""
    del sets[key][one]
    if not sets[key]:
        del sets[key]
