"""Devices that Placement counts: the offers of a host whose devices are free on the host, too.

Conductors with ``[filter_scheduler] pci_in_placement`` put a group per device into a request, named
after the device request.  The provider of a group is then the one to take the device from.
"""

import dataclasses
from collections.abc import Iterable, Set
from typing import Any

from scheduler import numa, pci
from scheduler.claims.backend import Decided
from scheduler.hosts.candidates import rows_of_nodes
from scheduler.hosts.host_state import POOLS, TOPOLOGY
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable


def is_compared(spec: Any, filters: Set[str]) -> bool:
    """True when one of the *filters* in force, by class name, looks at devices for *spec*."""
    is_near = spec.numa_topology is not None and "NUMATopologyFilter" in filters
    return (is_near or "PciPassthroughFilter" in filters) and bool(groups_for_devices(spec))


def groups_for_devices(spec: Any) -> list[str]:
    """Names of the groups of *spec* for devices that its flavor asks for."""
    groups = [each.requester_id for each in spec.requested_resources or ()]
    requests = spec.pci_requests.requests if spec.pci_requests else ()
    return [name for each in requests for name in _groups(each, groups)]


def _groups(request: Any, names: Iterable[str | None]) -> list[str]:
    """Those of the groups with these *names* that are for *request*: none for a port's."""
    start = request.request_id if request.alias_name else None
    return [name for name in names if start and name and name.startswith(start)]


def narrowed(wish: numa.Wish, spec: Any, offer: Any) -> numa.Wish:
    """The *wish* of an instance of *spec* with the providers of its devices that *offer* says."""
    mappings, requests = offer["mappings"], []
    for each in spec.pci_requests.requests:
        providers = [mappings[name][0] for name in _groups(each, mappings)]
        requests.append(pci.Request.from_object(each, tuple(sorted(providers))))
    return dataclasses.replace(wish, requests=tuple(requests))


def offers_with_free_devices(
    spec: Any, reservations: Reservations, decided: Decided, offers: Iterable[list[Any]]
) -> list[Any]:
    """Per instance the first of its *offers* that fits, up to one that has none.

    Its reservation takes these devices.  The caller holds the decision lock.
    """
    found = []
    for made, its_offers in zip(decided.reservations, offers, strict=True):
        offer = _take_first(spec, reservations, made, its_offers)
        if offer is None:
            break
        found.append(offer)
    return found


def compare_alternates(
    spec: Any, host_manager: Any, decided: Decided, known: dict[str, list[Any]]
) -> None:
    """Leave out alternates without free devices; the offer that fits is the first one *known*."""
    for row, made in zip(decided.selections, decided.reservations, strict=True):
        for each in row[1:]:
            node = each.compute_node_uuid
            with host_manager.lock:
                fitting = _first_fitting(spec, host_manager.table, made, node, known[node])
            if fitting is None:
                row.remove(each)
            else:
                known[node] = [fitting, *known[node]]


def _take_first(
    spec: Any, reservations: Reservations, made: Reservation, offers: list[Any]
) -> Any | None:
    wish = made.amount.wish
    if wish is None:
        return offers[0]
    had_cells = made.hardware is not None and made.hardware.guest is not None
    for offer in offers:
        reservations.change(made, narrowed(wish, spec, offer))
        found = made.hardware
        if found is None or (found.error is None and (found.guest or not had_cells)):
            return offer
    return None


def _first_fitting(
    spec: Any, table: HostTable, made: Reservation, node: str, offers: list[Any]
) -> Any | None:
    wish = made.amount.wish
    for row in rows_of_nodes(table, [node]).tolist():
        host, pools = table.value(row, TOPOLOGY), table.value(row, POOLS)
        for offer in offers:
            if wish is None or narrowed(wish, spec, offer).place(host, pools).error is None:
                return offer
    return None
