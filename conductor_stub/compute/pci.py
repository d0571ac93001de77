"""Handing devices of a host's PCI pools to instances: reference page numa_pci, 7.4 and 7.5."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from conductor_stub.compute.profiles import PciPool
from scheduler import errors

PHYSICAL_FUNCTION = "type-PF"


def free_pools(pools: Sequence[PciPool], instances: Iterable[Any]) -> list[PciPool]:
    """The pools that are left when every instance has its devices, as far as there are any.

    Pools with fewer tags are used up first; an empty one is left out.
    """
    left = sorted(pools, key=lambda pool: len(pool.tags))
    for instance in instances:
        left, _ = _take_all(left, instance)
    return left


def check(pools: Sequence[PciPool], instances: Iterable[Any], newcomer: Any) -> None:
    """Raise ``ComputeResourcesUnavailable`` if *instances* leave too little for *newcomer*."""
    _, missing = _take_all(free_pools(pools, instances), newcomer)
    if missing:
        raise errors.ComputeResourcesUnavailable(reason="; ".join(missing))


def _take_all(pools: list[PciPool], instance: Any) -> tuple[list[PciPool], list[str]]:
    missing = []
    for request in instance.pci_requests.requests if instance.pci_requests else ():
        pools, short = _take(pools, request)
        if short:
            wanted = request.alias_name or request.spec
            missing.append(f"{request.count} PCI devices {wanted} requested, {short} too many")
    return pools, missing


def _take(pools: Sequence[PciPool], request: Any) -> tuple[list[PciPool], int]:
    wanted = request.count or 0
    wants_function = any(spec.get("dev_type") == PHYSICAL_FUNCTION for spec in request.spec)
    left = []
    for pool in pools:
        kept_for_functions = pool.tags.get("dev_type") == PHYSICAL_FUNCTION and not wants_function
        if wanted and _matches(pool, request.spec) and not kept_for_functions:
            taken = min(wanted, pool.count)
            wanted -= taken
            pool = dataclasses.replace(pool, count=pool.count - taken)
        if pool.count:
            left.append(pool)
    return left, wanted


def _matches(pool: PciPool, specs: Iterable[Any]) -> bool:
    facts = {
        "vendor_id": pool.vendor_id,
        "product_id": pool.product_id,
        "numa_node": pool.numa_node,
        **pool.tags,
    }
    return any(all(facts.get(k) == v for k, v in spec.items()) for spec in specs)
