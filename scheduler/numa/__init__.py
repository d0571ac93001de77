"""NUMA: what flavors and images ask for, where it fits, what it uses, and giving that back.

Everything here computes on immutable values (reference page numa_pci).  ``semantics`` names
every difference between Newton and today.
"""

from scheduler.numa.constraints import constraints
from scheduler.numa.fitting import fit
from scheduler.numa.guest import GuestCell, GuestTopology
from scheduler.numa.host import HostCell, HostTopology, Networks, Pages
from scheduler.numa.limits import Limits
from scheduler.numa.placing import Placement, place
from scheduler.numa.semantics import CURRENT, NEWTON, NumaSemantics
from scheduler.numa.threads import lacks_threads, requires_threads
from scheduler.numa.usage import consume, usage

__all__ = [
    "CURRENT",
    "NEWTON",
    "GuestCell",
    "GuestTopology",
    "HostCell",
    "HostTopology",
    "Limits",
    "Networks",
    "NumaSemantics",
    "Pages",
    "Placement",
    "constraints",
    "consume",
    "fit",
    "lacks_threads",
    "place",
    "requires_threads",
    "usage",
]
