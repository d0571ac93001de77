"""Matching PCI requests with pools and taking devices out of them (section 7).

Pools are values: an allocation returns new ones, and keeping the old ones undoes it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from oslo_utils import strutils

from scheduler.pci.devices import Pool, Pools, Request


@dataclass(frozen=True, slots=True)
class Cells:
    """The host cells a guest was given (*chosen*) and the socket of every cell of the host."""

    chosen: frozenset[int]
    sockets: tuple[tuple[int, int | None], ...] = ()

    def nodes_on_same_sockets(self) -> frozenset[int]:
        """Cells on a socket that hosts a chosen cell; none when any socket is unknown."""
        if any(socket is None for _cell, socket in self.sockets):
            return frozenset()
        mine = {socket for cell, socket in self.sockets if cell in self.chosen}
        return frozenset(cell for cell, socket in self.sockets if socket in mine)


Affinity = Callable[[list[Pool], Request, Cells], list[Pool]]


def near_or_unknown(pools: list[Pool], _request: Request, cells: Cells) -> list[Pool]:
    """Newton: pools on a chosen cell or on an unknown one, in pool order."""
    return [p for p in pools if p.numa_node is None or p.numa_node in cells.chosen]


def by_policy(pools: list[Pool], request: Request, cells: Cells) -> list[Pool]:
    """Today: the nearest pools that suffice, as far away as the request's policy lets them be."""
    near = [p for p in pools if p.numa_node in cells.chosen]
    if request.policy == "required" or _enough(near, request):
        return near
    if request.policy == "socket":
        nodes = cells.nodes_on_same_sockets()
        return [p for p in pools if p.numa_node in nodes]
    acceptable = near_or_unknown(pools, request, cells)
    if request.policy != "preferred" or _enough(acceptable, request):
        return acceptable
    return acceptable + [p for p in pools if p not in acceptable]


def _enough(pools: list[Pool], request: Request) -> bool:
    return sum(pool.count for pool in pools) >= request.count


@dataclass(frozen=True, slots=True)
class PciSemantics:
    """One named behaviour per field, by default today's (page numa_pci, sections 9 and 10)."""

    #: Form in which texts of a spec and of a pool are compared.
    comparable: Callable[[str], str] = str.lower
    #: Choice of the pools that are near enough to the guest's host cells.
    affinity: Affinity = by_policy
    #: Device types given only to requests that name them.
    types_on_request: frozenset[str] = frozenset({"type-PF", "vdpa"})
    #: Pools tagged ``remote_managed`` serve only requests that ask for it.
    guards_remote_managed: bool = True
    #: Requests that are all (or all not) ``live_migratable`` take only pools tagged alike.
    matches_live_migratable: bool = True
    #: Spec keys that describe Placement resources and not devices.
    placement_keys: frozenset[str] = frozenset({"resource_class", "traits", "rp_uuids"})
    #: A request that no pool matches fails even if it wants no device.
    needs_a_pool: bool = True
    #: After a failed request the later ones are not served.
    stops_at_first_failure: bool = True


CURRENT = PciSemantics()

NEWTON = PciSemantics(
    comparable=str,
    affinity=near_or_unknown,
    types_on_request=frozenset({"type-PF"}),
    guards_remote_managed=False,
    matches_live_migratable=False,
    placement_keys=frozenset(),
    needs_a_pool=False,
    stops_at_first_failure=False,
)


def eligible(
    pools: Iterable[Pool], request: Request, cells: Cells | None, semantics: PciSemantics
) -> list[Pool]:
    """The pools that may serve *request*, in the order in which they are used up.

    *cells* are the host cells of the guest; None or no cell means any distance.
    """
    matching = [p for p in pools if any(_matches(p, each, semantics) for each in request.specs)]
    if cells is not None and cells.chosen:
        matching = semantics.affinity(matching, request, cells)
    hidden = semantics.types_on_request.difference(request.asks("dev_type"))
    matching = [pool for pool in matching if pool.values.get("dev_type") not in hidden]
    if semantics.guards_remote_managed and not any(map(_is_true, request.asks("remote_managed"))):
        matching = [p for p in matching if not _is_true(p.values.get("remote_managed"))]
    if request.providers:
        matching = [p for p in matching if 0 < _wanted_of(p, request) <= p.count]
    if semantics.matches_live_migratable:
        matching = _migratable_alike(matching, request)
    return matching


def _matches(pool: Pool, spec: tuple[tuple[str, str | None], ...], semantics: PciSemantics) -> bool:
    values, comparable = pool.values, semantics.comparable
    for key, wanted in spec:
        if key in semantics.placement_keys:
            continue
        found = values.get(key)
        if isinstance(wanted, str) and isinstance(found, str):
            if comparable(wanted) != comparable(found):
                return False
        elif wanted != found:
            return False
    return True


def _migratable_alike(pools: list[Pool], request: Request) -> list[Pool]:
    wishes = {_verdict(value) for value in request.asks("live_migratable")}
    if len(wishes) != 1 or None in wishes:
        return pools
    (wish,) = wishes
    return [p for p in pools if _verdict(p.values.get("live_migratable")) is wish]


def _verdict(value: str | None) -> bool | None:
    return None if value is None else _is_true(value)


def _is_true(value: str | None) -> bool:
    return bool(strutils.bool_from_string(value))


@dataclass(frozen=True, slots=True)
class Allocation:
    """The pools that remain, the devices *taken*, and whether every request was served.

    ``taken`` holds the touched pools with the number of devices that left them.
    """

    pools: Pools
    taken: tuple[Pool, ...]
    complete: bool


def allocate(
    pools: Pools, requests: Sequence[Request], cells: Cells | None, semantics: PciSemantics
) -> Allocation:
    """Take the devices of all *requests*, one request after the other.

    *cells* are the host cells of the guest (None: any distance will do).  An incomplete
    allocation shows what the semantics leave taken after a failure.
    """
    left, taken, complete = list(pools.pools), [], True
    for request in requests:
        share = _share(left, request, cells, semantics)
        if share is None:
            complete = False
            if semantics.stops_at_first_failure:
                break
            continue
        taken += share
        left = _without(left, share)
    return Allocation(Pools(tuple(left)), tuple(taken), complete)


def supports(
    pools: Pools, requests: Sequence[Request], cells: Cells | None, semantics: PciSemantics
) -> bool:
    """True when all *requests* can be served together."""
    return not requests or allocate(pools, requests, cells, semantics).complete


def _share(
    pools: list[Pool], request: Request, cells: Cells | None, semantics: PciSemantics
) -> list[Pool] | None:
    usable = eligible(pools, request, cells, semantics)
    if semantics.needs_a_pool and not usable:
        return None
    if request.providers:
        share = [pool.holding(_wanted_of(pool, request)) for pool in usable]
    else:
        share = _first(usable, request.count)
    return share if sum(pool.count for pool in share) >= request.count else None


def _wanted_of(pool: Pool, request: Request) -> int:
    """Number of devices that *request* is to take from the provider of *pool*."""
    return request.providers.count(str(pool.values.get("rp_uuid")))


def _first(pools: list[Pool], wanted: int) -> list[Pool]:
    share = []
    for pool in pools:
        if wanted == 0:
            break
        amount = min(pool.count, wanted)
        share.append(pool.holding(amount))
        wanted -= amount
    return share


def _without(pools: list[Pool], share: list[Pool]) -> list[Pool]:
    amounts = {pool.position: pool.count for pool in share}
    left = []
    for pool in pools:
        amount = amounts.get(pool.position)
        if amount is None:
            left.append(pool)
        elif pool.count > amount:
            left.append(pool.holding(pool.count - amount))
    return left
