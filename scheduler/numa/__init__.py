"""NUMA: topologies that flavors and images request, fitting them onto hosts, and their usage.

Everything here computes on immutable values (reference page numa_pci).  ``semantics`` names
every difference between Newton and today.  Imports only ``pci``, ``objects`` and ``errors``;
every room from ``conf`` upwards may import this package.
"""

# ruff: noqa: F401 - names for others to import from here

from scheduler.numa.constraints import constraints
from scheduler.numa.fitting import Placement, Rules, Wish, consume
from scheduler.numa.semantics import CURRENT, NEWTON, NumaSemantics
from scheduler.numa.specs import requires_threads
from scheduler.numa.topology import (
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Limits,
    Networks,
    Pages,
)
