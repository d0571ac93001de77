"""Who keeps the books between a decision and the compute node's own report: we do.

Every pick stays subtracted from its host's row until the host's report includes the instance, the
instance turns out to be elsewhere or gone, or the pick is too old to be believed.  Picks of a
request that failed are undone at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scheduler.hosts import consumption, evidence
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.evidence import End, Terms
from scheduler.hosts.fitting import Booking
from scheduler.hosts.image_properties import Properties
from scheduler.hosts.table import NEVER, HostTable, Key

#: A pick whose instance never showed up anywhere is given up after this long.
EXPIRY_SECONDS = 120.0


class TrackedInstance(NamedTuple):
    """What is known of an instance on a host; ``updated_at`` in seconds since the epoch."""

    uuid: str
    host: str | None
    node: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    instance_type_id: int | None = None
    vm_state: str | None = None
    task_state: str | None = None
    updated_at: float = 0.0
    image_properties: Properties = frozenset()


@dataclass(slots=True, eq=False)
class Pick:
    """One instance promised to one host."""

    key: Key
    amount: Consumption
    terms: Terms
    #: The instance's uuid, if the request named it.
    uuid: str | None
    #: What stands for the instance on its host until the instance itself is seen there.
    placeholder: TrackedInstance | None
    #: The cells and devices it has in the row as it is now, if it wants any.
    booking: Booking | None = None
    #: The instance's row, once one was read.
    instance: Any = None


class Books:
    """The picks that the table's rows carry on top of what the hosts reported."""

    def __init__(self, table: HostTable, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self.table = table
        self.expiry_seconds = expiry_seconds
        self._picks: dict[Key, list[Pick]] = {}
        self._of_uuid: dict[str | None, list[Pick]] = {}
        #: Picks that something was read of since they were judged; their order is kept.
        self._touched: dict[Pick, None] = {}
        #: By second since the epoch the picks that expire within it.
        self._expiring: dict[int, dict[Pick, None]] = {}

    def __iter__(self) -> Iterator[Pick]:
        return (pick for picks in self._picks.values() for pick in picks)

    def copy(self, table: HostTable) -> Books:
        """Books of the same open picks on *table*, a copy of this table; nobody is told of them."""
        twin = Books(table, self.expiry_seconds)
        copies = {pick: dataclasses.replace(pick) for pick in self}
        twin._picks = {key: [copies[each] for each in kept] for key, kept in self._picks.items()}
        twin._of_uuid = {
            uuid: [copies[each] for each in kept] for uuid, kept in self._of_uuid.items()
        }
        twin._touched = {copies[each]: None for each in self._touched if each in copies}
        for pick in copies.values():
            twin._expires(pick)
        return twin

    def on(self, key: Key) -> tuple[Pick, ...]:
        """The open picks on the row of *key*, in the order in which they were made."""
        return tuple(self._picks.get(key, ()))

    def look(self) -> None:
        """Look, before rows are read, at promises that others keep: none are, here.

        This may do I/O; the decision lock is not held.
        """

    def forget_strangers(self) -> None:
        """Keep nothing of hosts that are not in the table any more: nothing is kept, here."""

    def promised(self) -> Set[str | None]:
        """The uuids of the instances that have an open pick."""
        return self._of_uuid.keys()

    def accepts(self, key: Key, updated_at: float) -> bool:
        """Whether a row of *key* just read, last written at *updated_at*, replaces the known one.

        A report always does; what is promised on the host is subtracted from it again.
        """
        del key, updated_at
        return True

    def claimable(self, rows: np.ndarray) -> np.ndarray:
        """Mask of the *rows* that may be picked: not those that their host never filled in."""
        reported: np.ndarray = self.table.column("reported")[rows]
        return reported

    def pick(
        self,
        row: int,
        uuid: str | None,
        amount: Consumption,
        now: float,
        stand_in: str | None = None,
        instance_type_id: int | None = None,
    ) -> Pick:
        """Consume *amount* on *row* and remember it.

        An instance without *uuid* is seen on its host under the name *stand_in*, if given;
        *instance_type_id* is the number of its flavor.
        """
        pick = self._made(self._key_of_row(row), uuid, amount, now, stand_in, instance_type_id)
        self.add(pick)
        self._promise(pick, uuid or stand_in)
        return pick

    def pick_many(
        self,
        rows: Sequence[int],
        names: Sequence[tuple[str | None, str | None]],
        amount: Consumption,
        now: float,
        instance_type_id: int | None = None,
    ) -> list[Pick]:
        """``pick`` for each of *rows* with uuid and stand-in of its instance in *names*.

        None of the rows is bare metal, and *amount* has no wish for cells or devices.
        """
        times = Counter(rows)
        consumption.take_many(self.table, times, amount)
        keys = {row: self._key_of_row(row) for row in times}
        picks = [
            self._made(keys[row], uuid, amount, now, stand_in, instance_type_id)
            for row, (uuid, stand_in) in zip(rows, names, strict=True)
        ]
        for pick, (uuid, stand_in) in zip(picks, names, strict=True):
            self._remember(pick)
            self._promise(pick, uuid or stand_in)
        if picks:  # all expire together
            self._expiring.setdefault(_last_second(picks[0]), {}).update(dict.fromkeys(picks))
        return picks

    def _promise(self, pick: Pick, name: str | None) -> None:
        """The instance of that *name* is promised to a host; these books tell nobody."""

    def _key_of_row(self, row: int) -> Key:
        return self.table.text(row, "host"), self.table.text(row, "nodename")

    def _made(
        self,
        key: Key,
        uuid: str | None,
        amount: Consumption,
        now: float,
        stand_in: str | None,
        instance_type_id: int | None,
    ) -> Pick:
        host, node = key
        name, placeholder = uuid or stand_in, None
        if name:
            placeholder = TrackedInstance(name, host, node, None, None, instance_type_id)
        expires_at = now + self.expiry_seconds
        terms = Terms(host, node, self._home_of(uuid), instance_type_id, now, expires_at)
        return Pick(key, amount, terms, uuid, placeholder)

    def _home_of(self, uuid: str | None) -> str | None:
        """The host that the instance is to leave; None for one that is only promised or built."""
        home = self.table.host_of_instance.get(uuid or "")
        if home is None:
            return None
        seen = self.table.instances[home][uuid or ""]
        return None if seen.vm_state in (None, evidence.BUILDING) else home

    def add(self, pick: Pick) -> None:
        """Consume what *pick* takes, on its host's row if there is one yet, and remember it."""
        row = self.table.rows.get(pick.key)
        if row is not None:
            pick.booking = consumption.take(self.table, row, pick.amount)
        self._remember(pick)
        self._expires(pick)

    def _remember(self, pick: Pick) -> None:
        placeholder = pick.placeholder
        if placeholder and placeholder.uuid not in self.table.host_of_instance:
            self.table.put_instance(pick.key[0], placeholder.uuid, placeholder)
        self._picks.setdefault(pick.key, []).append(pick)
        if pick.uuid:
            self._of_uuid.setdefault(pick.uuid, []).append(pick)

    def _expires(self, pick: Pick) -> None:
        self._expiring.setdefault(_last_second(pick), {})[pick] = None

    def undo(self, pick: Pick) -> None:
        """Give back what *pick* took, and forget it.

        Picks that found their cells and devices after it find them anew.
        """
        row = self.table.rows.get(pick.key)
        if row is not None:
            later = self._fitted_after(pick)
            for each in (*reversed(later), pick):
                consumption.give_back(self.table, row, each.amount, each.booking)
            for each in later:
                each.booking = consumption.take(self.table, row, each.amount)
        self._forget(pick)

    def confirm(self, picks: Iterable[Pick]) -> None:
        """A decision stands: its *picks* replace earlier ones of the same instances."""
        for pick in picks:
            known = self._of_uuid.get(pick.uuid, ())
            if len(known) < 2:
                continue
            earlier = [each for each in known if each is not pick]
            for each in earlier:
                self.undo(each)
            placeholder = pick.placeholder
            if earlier and placeholder and placeholder.uuid not in self.table.host_of_instance:
                self.table.put_instance(pick.key[0], placeholder.uuid, placeholder)

    def reapply(self, key: Key) -> None:
        """Subtract the open picks again after the row of *key* was read from the database."""
        row = self.table.rows[key]
        for pick in self._picks.get(key, ()):
            pick.booking = consumption.take(self.table, row, pick.amount)
            self._touched[pick] = None

    @contextlib.contextmanager
    def without(self, picks: Collection[Pick]) -> Iterator[None]:
        """The table as it would be if *picks* took nothing, until the end of the block."""
        keys = {pick.key for pick in picks} & self.table.rows.keys()
        left_out = frozenset(picks)
        for key in keys:
            self._return_all(key)
            self._take_all(key, left_out)
        try:
            yield
        finally:
            for key in keys:
                self._return_all(key, left_out)
                self._take_all(key)

    def _return_all(self, key: Key, left_out: Collection[Pick] = ()) -> None:
        for pick in reversed(self._picks[key]):
            if pick not in left_out:
                consumption.give_back(self.table, self.table.rows[key], pick.amount, pick.booking)
            pick.booking = None

    def _take_all(self, key: Key, left_out: Collection[Pick] = ()) -> None:
        for pick in self._picks[key]:
            if pick not in left_out:
                pick.booking = consumption.take(self.table, self.table.rows[key], pick.amount)

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """Close every pick that the state just read has caught up with.

        *found* are the rows of instances that were read.
        """
        self.note(found)
        for pick in self._to_judge(now):
            if self.end_of(pick, now) is not None:
                self.undo(pick)

    def note(self, found: Sequence[Any]) -> None:
        """Remember the rows *found* that are of instances with an open pick."""
        for row in found:
            for pick in self._of_uuid.get(row.uuid, ()):
                if pick.instance is not row:
                    pick.instance = row
                    self._touched[pick] = None

    def _to_judge(self, now: float) -> Iterable[Pick]:
        """The open picks that may be over: all others are as they were when judged last."""
        picks, self._touched = self._touched, {}
        for second in [each for each in self._expiring if each <= now]:
            picks.update(self._expiring[second])
        return picks

    def end_of(self, pick: Pick, now: float) -> End | None:
        """Why *pick* is over, as far as the rows read so far tell; None while it stands."""
        row = self.table.rows.get(pick.key)
        reported_at = NEVER if row is None else self.table.value(row, "updated_at")
        end = evidence.end_of(pick.terms, pick.instance, reported_at, now)
        if end is None and pick.uuid is None and reported_at > pick.terms.created_at:
            end = End.REPORTED  # nobody can tell whether an instance without a name has arrived
        return end

    def _fitted_after(self, pick: Pick) -> list[Pick]:
        if pick.booking is None:
            return []
        picks = self._picks[pick.key]
        return [each for each in picks[picks.index(pick) + 1 :] if each.booking is not None]

    def _forget(self, pick: Pick) -> None:
        _drop(self._picks, pick.key, pick)
        if pick.uuid:
            _drop(self._of_uuid, pick.uuid, pick)
        self._touched.pop(pick, None)
        second = _last_second(pick)
        del self._expiring[second][pick]
        if not self._expiring[second]:
            del self._expiring[second]
        placeholder = pick.placeholder
        if placeholder is None:
            return
        uuid = placeholder.uuid
        if self.table.instances.get(pick.key[0], {}).get(uuid) is placeholder:
            self.table.drop_instance(uuid)


def _last_second(pick: Pick) -> int:
    """The second in which *pick* expires, the first of all where its claim does not say when."""
    return int(max(pick.terms.expires_at, 0.0))


def _drop(lists: dict[Any, list[Pick]], key: Any, pick: Pick) -> None:
    lists[key].remove(pick)
    if not lists[key]:
        del lists[key]
