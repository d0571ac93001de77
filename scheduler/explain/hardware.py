"""NUMA cells, PCI devices and what else a host says of itself, in words."""

from __future__ import annotations

from typing import Any

from scheduler import numa, pci
from scheduler.filters import host_attributes
from scheduler.hosts import consumption
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState

_SCOPE = "capabilities"


def capability(state: HostState, key: str) -> str:
    """What the path of the extra spec *key* leads to on the host."""
    path = key.split(":")
    if path[0] == _SCOPE:
        path = path[1:]
    elif path[0] == "hw":
        path = ["cpu_info", "maxphysaddr", "bits"]
    found: list[str] = []

    def look(text: str) -> bool:
        found.append(text)
        return False

    host_attributes.judge(Candidates.alone(state), path, look)
    return found[0] if found else "not reported"


def threads(_filter: Any, _state: HostState, _request: Any) -> tuple[str, str]:
    """Sibling threads are wanted."""
    return "sibling threads", "its cells have none"


def cells(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    """The cells that are wanted, and those of the host."""
    guest = consumption.guest_of(request)
    wanted = "; ".join(map(_guest_cell, guest.cells)) if guest is not None else "no cells"
    topology = state.table.value(state.row, consumption.TOPOLOGY)
    if not topology:
        return wanted, "reports no NUMA cells"
    return wanted, "; ".join(map(_host_cell, topology.cells))


def _guest_cell(cell: numa.GuestCell) -> str:
    cpus = len(cell.floating | cell.dedicated)
    pinned = " pinned" if cell.is_pinned else ""
    pages = f" in pages ({_pagesize(cell.pagesize)})" if cell.pagesize else ""
    return f"a cell with {cpus}{pinned} CPUs and {cell.memory_mb} MiB{pages}"


def _pagesize(size_kb: int) -> str:
    return {-1: "small", -2: "large", -3: "any"}.get(size_kb, f"{size_kb} KiB")


def _host_cell(cell: Any) -> str:
    may_pin = cell.cpus if cell.pcpus is None else cell.pcpus
    free_mb = cell.memory_mb - cell.memory_usage_mb
    pages = "".join(
        f", {each.free_kb // each.size_kb} free pages of {each.size_kb} KiB" for each in cell.pages
    )
    return (
        f"cell {cell.id}: {len(cell.cpus)} CPUs ({len(may_pin - cell.pinned)} to pin), "
        f"{free_mb} MiB free{pages}"
    )


def devices(_filter: Any, state: HostState, request: Any) -> tuple[str, str]:
    """The PCI devices that are wanted, and those that are free."""
    wanted = ", ".join(map(_device_request, pci.requests_of(request.pci_requests)))
    pools = state.table.value(state.row, consumption.POOLS)
    if pools is None:
        return wanted, "never reported its PCI devices"
    free = ", ".join(
        f"{pool.count} × {pool.kind.vendor_id}:{pool.kind.product_id}" for pool in pools.pools
    )
    return wanted, f"free: {free or 'none'}"


def _device_request(request: pci.Request) -> str:
    name = request.alias_name or " or ".join(
        ",".join(f"{key}={value}" for key, value in spec) for spec in request.specs
    )
    return f"{request.count} × PCI device {name}"
