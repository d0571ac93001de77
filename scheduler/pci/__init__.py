"""PCI devices: pools of a host, requests of an instance, and allocating one from the other.

Everything here computes on immutable values (reference page numa_pci, section 7).  Imports only
``objects`` and ``errors``; ``numa`` and every room above may import this package.
"""

from scheduler.pci.aliases import (
    ALIAS_KEY,
    Alias,
    affinity_policy,
    parse_aliases,
    requests_of_flavor,
)
from scheduler.pci.allocation import (
    CURRENT,
    NEWTON,
    Allocation,
    Cells,
    PciSemantics,
    allocate,
    supports,
)
from scheduler.pci.devices import Pool, Pools, Request, kinds_of, requests_of

__all__ = [
    "ALIAS_KEY",
    "CURRENT",
    "NEWTON",
    "Alias",
    "Allocation",
    "Cells",
    "PciSemantics",
    "Pool",
    "Pools",
    "Request",
    "affinity_policy",
    "allocate",
    "kinds_of",
    "parse_aliases",
    "requests_of",
    "requests_of_flavor",
    "supports",
]
