"""The interface between a driver and the back end that claims the hosts which it chooses.

A driver calls a back end, and never the reverse: it opens its request, decides, has the decision
booked, and decides again where it was lost (``drivers.filter_scheduler``).  ``Claims`` is the back
end none; ``database`` and ``placement`` inherit from it.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scheduler import errors, idempotency, objects
from scheduler.engine.record import PlacementUse
from scheduler.hosts.candidates import Candidates, request_is_rebuild
from scheduler.hosts.reservations import Reservation
from scheduler.hosts.table import Key

Selections = list[list[objects.Selection]]
"""Per instance the chosen host, then its alternates."""


@dataclass(frozen=True)
class Request:
    """One ``select_destinations``; *spec* is as it came, and not to be changed."""

    context: Any
    spec: objects.RequestSpec
    instance_uuids: tuple[str, ...]
    with_alternates: bool

    @property
    def count(self) -> int:
        return len(self.instance_uuids) or self.spec.num_instances

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The uuids of the instances, if the request names all of them."""
        own = getattr(self.spec, "instance_uuid", None)
        named = self.instance_uuids or ((own,) if own else ())
        return named if len(named) == self.count else ()

    @functools.cached_property
    def request_id(self) -> str | None:
        """The caller's request id with a fingerprint of the arguments; None without an id."""
        arguments = (self.spec, self.instance_uuids, self.with_alternates)
        return idempotency.request_id(self.context, arguments)

    @property
    def arrived_at(self) -> float | None:
        """When it came off the bus, on the monotonic clock; None if it did not."""
        return getattr(self.context, "arrived_at", None)

    @property
    def is_redelivered(self) -> bool:
        """True when another worker may have begun with it, and still be at it."""
        return bool(getattr(self.context, "is_redelivered", False))

    def is_bound(self, host_manager: Any) -> bool:
        """True for a move, or where it names a host or node: one may have gone down just now."""
        spec, destination = self.spec, self.spec.requested_destination
        is_there = destination and (destination.host or destination.node)
        if spec.force_hosts or spec.force_nodes or is_there:
            return True
        with host_manager.lock:
            return any(map(host_manager.reservations.home_of, self.names))

    @property
    def takes_hosts(self) -> bool:
        """True when its instances need room: not if one is only rebuilt where it is."""
        return not request_is_rebuild(self.spec)


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision: the answer, and per instance the reservation behind it."""

    selections: Selections
    reservations: Sequence[Reservation]


@dataclass(frozen=True, slots=True)
class Offered:
    """The *nodes* to choose from by their uuids, each with its room in instances, if known.

    With *others* so are all that are not named, if they are in the mask that *grantable* gives.
    """

    nodes: Mapping[str, int | None]
    others: bool = False
    grantable: Callable[[Candidates], np.ndarray] | None = None


@dataclass(frozen=True, slots=True)
class Booked:
    """A decision that holds; *outcome* is None where nothing had to be claimed."""

    selections: Selections
    outcome: str | None = "booked"


@dataclass(frozen=True, slots=True)
class Lost:
    """A decision that does not hold; the reservations are given back."""

    #: True if others took it; else it is known by now what else to choose from.
    is_race: bool = True
    #: True if the state must be read to know what they took.
    needs_read: bool = True
    #: Hosts that somebody holds a lock on, and for too long.
    locked: frozenset[Key] = frozenset()
    outcome: ClassVar[str] = "lost"


@dataclass(frozen=True, slots=True)
class Placed:
    """The host that an instance of *request* has already, as far as allocations tell."""

    request: Request
    node_uuid: str
    allocation_request: str
    version: str
    alternates: Sequence[objects.Selection]


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same request has this answer already; the reservations are given back.

    Where only the hosts are known, they are *placed*, one per instance.
    """

    selections: Selections
    placed: Sequence[Placed] = ()
    outcome: ClassVar[str] = "repeated"


Result = Booked | Lost | Repeated
OUTCOMES = ("booked", Lost.outcome, Repeated.outcome)


class Claiming:
    """One request on its way; this one claims nothing, as with Nova before Placement."""

    placement: PlacementUse | None = None
    """Use made of Placement; it grows until the request is over, and a little after that."""

    def offered(self) -> Offered | None:
        """The nodes to choose from; None: any host will do.  May raise NoValidHost."""
        return None

    def book(self, decided: Decided) -> Result:
        """Claim all that was *decided*, or nothing."""
        return Booked(decided.selections, outcome=None)

    def in_doubt(self) -> Collection[Reservation]:
        """Reservations that perhaps take nothing.  The caller holds the decision lock."""
        return ()

    def refused(self, error: errors.NovaException) -> Lost | Repeated:
        """The answer that the request has all the same, or Lost: decide anew.  Raises *error*."""
        raise error


class Claims:
    """No claims: the reservations of one worker are its own."""

    offers_hosts: ClassVar[bool] = False
    """True when only hosts that it offers are given out."""

    problem: str | None = None
    """Reason why claims were not possible of late, if they were not."""

    needs_database: ClassVar[bool] = False
    """True when claims are in it: nothing is answered without it, and all is read regularly."""

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Claiming]:
        """Begin with *request*, before state is read for it; what it holds goes with an error."""
        del request
        yield Claiming()

    @property
    def learned_at(self) -> float | None:
        """When hosts were looked at where claims are kept, if they are (monotonic clock)."""
        return None

    def read_new(self) -> None:
        """Count what others have claimed, without reading what the hosts report: nothing."""

    def prepare(self) -> None:
        """Make ready what requests would otherwise wait for: nothing."""

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """Return the function that puts *conf*'s part about claims in force: nothing."""
        del conf
        return lambda: None
