"""Taking devices out of pools (section 7.5).

Pools are values: booking returns new ones, and who keeps the old ones has undone it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.pci.affinity import Cells
from scheduler.pci.matching import eligible
from scheduler.pci.pools import Pool, Pools
from scheduler.pci.requests import Request
from scheduler.pci.semantics import PciSemantics

#: Group suffix of an allocation candidate to the providers it takes that group from.
ProviderMapping = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Booking:
    """What is left after booking, what was *taken*, and whether every request was served.

    ``taken`` holds the touched pools with the number of devices that left them.
    """

    pools: Pools
    taken: tuple[Pool, ...]
    complete: bool


def book(
    pools: Pools,
    requests: Sequence[Request],
    cells: Cells | None,
    semantics: PciSemantics,
    providers: ProviderMapping | None = None,
) -> Booking:
    """Take the devices of all *requests*, one request after the other.

    *cells* are the host cells of the guest (None: distance is no matter), *providers* what an
    allocation candidate of Placement prescribes.  A booking that is not complete shows what
    the semantics leave booked after a failure.
    """
    left, taken, complete = list(pools.pools), [], True
    for request in requests:
        share = _share(left, request, cells, semantics, providers)
        if share is None:
            complete = False
            if semantics.stops_at_first_failure:
                break
            continue
        taken += share
        left = _without(left, share)
    return Booking(Pools(tuple(left)), tuple(taken), complete)


def supports(
    pools: Pools,
    requests: Sequence[Request],
    cells: Cells | None,
    semantics: PciSemantics,
    providers: ProviderMapping | None = None,
) -> bool:
    """Whether all *requests* could be booked together."""
    return not requests or book(pools, requests, cells, semantics, providers).complete


def _share(
    pools: list[Pool],
    request: Request,
    cells: Cells | None,
    semantics: PciSemantics,
    providers: ProviderMapping | None,
) -> list[Pool] | None:
    usable = eligible(pools, request, cells, semantics)
    allocated = _allocated(request, providers)
    if allocated:
        usable = [p for p in usable if 0 < allocated[p.provider] <= p.count]
    if semantics.needs_a_pool and not usable:
        return None
    if allocated:
        share = [pool.holding(allocated[pool.provider]) for pool in usable]
    else:
        share = _first(usable, request.count)
    return share if sum(pool.count for pool in share) >= request.count else None


def _allocated(request: Request, providers: ProviderMapping | None) -> Counter[str | None]:
    if not providers or request.request_id is None:
        return Counter()
    names = (f"{request.request_id}-{number}" for number in range(request.count))
    return Counter(uuid for name in names for uuid in providers.get(name, ()))


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
