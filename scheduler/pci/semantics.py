"""Where Newton and today's releases differ about PCI devices; each difference is one entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.pci.affinity import Affinity, by_policy, near_or_unknown


@dataclass(frozen=True, slots=True)
class PciSemantics:
    """One named behaviour per field (reference page numa_pci, sections 9 and 10)."""

    #: Form in which texts of a spec and of a pool are compared.
    comparable: Callable[[str], str]
    #: Which pools are near enough to the guest's host cells.
    affinity: Affinity
    #: Device types given only to requests that name them.
    types_on_request: frozenset[str]
    #: Pools tagged ``remote_managed`` serve only requests that ask for it.
    guards_remote_managed: bool
    #: Requests that are all (or all not) ``live_migratable`` take only pools tagged alike.
    matches_live_migratable: bool
    #: Spec keys that describe Placement resources and not devices.
    placement_keys: frozenset[str]
    #: A request that no pool matches fails even if it wants no device.
    needs_a_pool: bool
    #: After a request that failed the ones behind it are not booked any more.
    stops_at_first_failure: bool


def _same(text: str) -> str:
    return text


CURRENT = PciSemantics(
    comparable=str.lower,
    affinity=by_policy,
    types_on_request=frozenset({"type-PF", "vdpa"}),
    guards_remote_managed=True,
    matches_live_migratable=True,
    placement_keys=frozenset({"resource_class", "traits"}),
    needs_a_pool=True,
    stops_at_first_failure=True,
)

NEWTON = PciSemantics(
    comparable=_same,
    affinity=near_or_unknown,
    types_on_request=frozenset({"type-PF"}),
    guards_remote_managed=False,
    matches_live_migratable=False,
    placement_keys=frozenset(),
    needs_a_pool=False,
    stops_at_first_failure=False,
)
