"""Where Newton and today's releases differ about NUMA; each difference is one entry."""

from collections.abc import Callable
from dataclasses import dataclass

from scheduler import pci
from scheduler.numa import pairing, specs
from scheduler.numa.topology import GuestCell, HostCell, HostTopology


def _all_cpus(host: HostCell, guest: GuestCell) -> int:
    """Newton: every CPU counts, with ``isolate`` the threads that it keeps idle as well."""
    isolated = guest.thread_policy == "isolate"
    each = host.threads_per_core if isolated else 1
    return len(guest.cpus) * each + len(guest.reserved)


@dataclass(frozen=True, slots=True)
class NumaSemantics:
    """One named behaviour per field, by default today's (page numa_pci, sections 9 and 10)."""

    # Fitting
    #: Test of hosts for requests that require sibling threads.
    has_siblings: Callable[[HostTopology], bool] = lambda host: any(
        cell.threads_per_core > 1 for cell in host.cells
    )
    #: The order in which the cells of a host are tried.
    order: pairing.Order = pairing.by_room
    #: Checks of a pair of cells, in this order; a page size once settled stays settled.
    checks: tuple[pairing.Check, ...] = (
        pairing.pages_or_memory,
        pairing.cpus_exist,
        pairing.memory_unused_unless_paged,
        pairing.cpus_pinned,
        pairing.within_limits,
    )
    #: The cores of a cell, also where sibling sets are missing.
    cores: pairing.Cores = pairing.complete_cores
    #: Test for cells that serve the thread policy ``isolate``: not where threads are siblings and
    #: CPUs are divided into shared and dedicated.
    can_isolate: Callable[[HostCell], bool] = lambda host: (
        host.threads_per_core == 1 or host.pinnable == host.cpus
    )
    #: With incomplete sibling sets a guest may get fewer pins than it has CPUs.
    may_pin_too_few: bool = False
    #: The fitted guest says what cores and threads it sees.
    shows_cores: bool = False
    #: A guest that wants PCI devices does not fit where pools are unknown.
    missing_pools_refuse: bool = False

    # Counting
    #: The number of CPUs that a guest cell counts as: what is pinned is known by name.
    counted_cpus: Callable[[HostCell, GuestCell], int] = lambda _host, guest: len(guest.floating)
    #: The size of the pages that a guest cell is counted in, None for not at all.
    counted_pages: Callable[[HostCell, GuestCell], int | None] = pairing.size_or_smallest
    #: The cores that ``isolate`` takes as wholes.
    isolated_cores: pairing.Cores = pairing.complete_cores

    # Placing a whole request
    #: A guest keeps its wishes when the host has no topology; else they are forgotten.
    keeps_wishes_without_host: bool = True
    #: Cells are counted before PCI devices are taken; a failure stops what comes after it.
    counts_before_devices: bool = True

    # Constraints of flavor and image
    #: CPU policies that exist.
    cpu_policies: tuple[str, ...] = ("dedicated", "shared", "mixed")
    #: An unknown CPU policy of a flavor is refused; else it counts as none.
    refuses_unknown_cpu_policy: bool = True
    #: The page size (KiB) that a text asks for, None for no wish.
    page_size_kb: Callable[[str], int | None] = specs.current_size_kb
    #: The CPUs that a realtime mask names are checked.
    checks_realtime_mask: bool = True
    #: Extra specs of these prefixes are not known.
    unknown_extra_specs: tuple[str, ...] = ()

    #: The differences about PCI devices.
    pci: "pci.PciSemantics" = pci.CURRENT


CURRENT = NumaSemantics()

NEWTON = NumaSemantics(
    has_siblings=lambda host: any(cell.siblings for cell in host.cells),
    order=lambda host, *_others: host.cells,
    checks=(
        pairing.memory_exists,
        pairing.cpus_exist,
        pairing.memory_unused,
        pairing.cpus_pinned,
        pairing.within_limits,
        pairing.pages_if_requested,
    ),
    cores=lambda host: host.siblings or pairing.singles(host.pinnable),
    can_isolate=lambda _host: True,
    may_pin_too_few=True,
    shows_cores=True,
    missing_pools_refuse=True,
    counted_cpus=_all_cpus,
    counted_pages=pairing.size_if_requested,
    isolated_cores=lambda host: host.siblings,
    keeps_wishes_without_host=False,
    counts_before_devices=False,
    cpu_policies=("dedicated", "shared"),
    refuses_unknown_cpu_policy=False,
    page_size_kb=specs.newton_size_kb,
    checks_realtime_mask=False,
    unknown_extra_specs=(
        *("hw:emulator_threads_policy", "hw:cpu_dedicated_mask", "hw:pmem", "resources", "trait"),
    ),
    pci=pci.NEWTON,
)
