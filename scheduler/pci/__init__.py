"""PCI devices: pools of a host, matching requests against them, booking and giving back.

Everything here computes on immutable values (reference page numa_pci, section 7).
"""

from scheduler.pci.affinity import Cells
from scheduler.pci.aliases import (
    ALIAS_KEY,
    Alias,
    affinity_policy,
    parse_aliases,
    requests_of_flavor,
)
from scheduler.pci.booking import Booking, book, supports
from scheduler.pci.pools import Pool, Pools
from scheduler.pci.requests import Request, kinds_of, requests_of
from scheduler.pci.semantics import CURRENT, NEWTON, PciSemantics

__all__ = [
    "ALIAS_KEY",
    "CURRENT",
    "NEWTON",
    "Alias",
    "Booking",
    "Cells",
    "PciSemantics",
    "Pool",
    "Pools",
    "Request",
    "affinity_policy",
    "book",
    "kinds_of",
    "parse_aliases",
    "requests_of",
    "requests_of_flavor",
    "supports",
]
