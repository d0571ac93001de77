"""PCI devices: pools of a host, requests of an instance, and allocating one from the other.

Everything here computes on immutable values (reference page numa_pci, section 7).  Imports only
``objects`` and ``errors``; ``numa`` and every room above may import this package.
"""

# ruff: noqa: F401 - names for others to import from here

from scheduler.pci.aliases import ALIAS_KEY, Alias, parse_aliases, requests_of_flavor
from scheduler.pci.allocation import (
    CURRENT,
    NEWTON,
    Allocation,
    Cells,
    PciSemantics,
    allocate,
    supports,
)
from scheduler.pci.devices import Pool, Pools, Request, requests_of
