"""Which pools may serve a request (reference page numa_pci, sections 7.4, 7.5 and 10)."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.pci.affinity import Cells
from scheduler.pci.pools import Pool
from scheduler.pci.requests import Request
from scheduler.pci.semantics import PciSemantics

_TRUE_WORDS = frozenset({"1", "t", "true", "on", "y", "yes"})


def eligible(
    pools: Iterable[Pool], request: Request, cells: Cells | None, semantics: PciSemantics
) -> list[Pool]:
    """The pools that may serve *request*, in the order in which they are used up.

    *cells* are the host cells of the guest; None or no cell means that distance is no matter.
    """
    matching = [pool for pool in pools if _matches_any(pool, request, semantics)]
    if cells is not None and cells.chosen:
        matching = semantics.affinity(matching, request, cells)
    hidden = semantics.types_on_request.difference(request.asks("dev_type"))
    matching = [pool for pool in matching if pool.kind.values.get("dev_type") not in hidden]
    if semantics.guards_remote_managed and not any(map(_is_true, request.asks("remote_managed"))):
        matching = [p for p in matching if not _is_true(p.kind.values.get("remote_managed"))]
    if semantics.matches_live_migratable:
        matching = _migratable_alike(matching, request)
    return matching


def _matches_any(pool: Pool, request: Request, semantics: PciSemantics) -> bool:
    return any(_matches(pool, spec, semantics) for spec in request.specs)


def _matches(pool: Pool, spec: tuple[tuple[str, str | None], ...], semantics: PciSemantics) -> bool:
    values, comparable = pool.kind.values, semantics.comparable
    for key, wanted in spec:
        if key in semantics.placement_keys:
            continue
        found = values.get(key)
        if isinstance(wanted, str) and isinstance(found, str):
            if comparable(wanted) != comparable(found):
                return False
        elif wanted != found:
            return False
    return True


def _migratable_alike(pools: list[Pool], request: Request) -> list[Pool]:
    wishes = {_verdict(value) for value in request.asks("live_migratable")}
    if len(wishes) != 1 or None in wishes:
        return pools
    (wish,) = wishes
    return [p for p in pools if _verdict(p.kind.values.get("live_migratable")) is wish]


def _verdict(value: str | None) -> bool | None:
    return None if value is None else _is_true(value)


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _TRUE_WORDS
