"""Nova's recorded placements with cells and devices: verdicts, limits and what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.evaluation.examples import cells_in_use
from tests.unit.numa import placements

#: Suite -> decisions that must at least be among those compared (shared ones count twice).
SUITES = {
    "numa_newton": 260,
    "numa_newton_multi": 200,
    "numa_2026": 260,
    "numa_2026_multi": 200,
    "pci_2026": 180,
    "pci_shared": 292,
    "pci_multi_2026": 170,
    "pci_multi_newton": 255,
}


@pytest.mark.parametrize("suite", SUITES)
def test_suite(suite: str) -> None:
    compared, different = 0, []
    for case in placements.load(suite):
        kinds = ("newton", "2026") if case["semantics"] == "all" else (case["semantics"],)
        for kind in kinds:
            compared += 1
            different += [f"{case['name']} {kind}: {each}" for each in differences(case, kind)]
    assert different == []
    assert compared >= SUITES[suite]


def differences(case: dict[str, Any], semantics: str) -> Iterator[str]:
    expected, decision = case["expect"], placements.Decision(case, semantics)
    chain = decision.passed()
    if chain != expected.get("filters"):
        yield "filters"
    if limits(decision, chain) != expected.get("limits", {}):
        yield "limits"
    for number, chosen in enumerate(expected.get("selected", ())):
        if number and chosen not in decision.passed()[-1]["passed"]:
            yield f"choice {number}"
        decision.place("/".join(chosen))
    for key, state in expected.get("state_after", {}).items():
        yield from differences_after(decision.hosts[key], state)


def limits(decision: placements.Decision, chain: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for name in chain[-1]["passed"]:
        key = "/".join(name)
        given = decision.hosts[key].limits
        if given is None:
            continue
        found[key] = {
            "numa_topology": {
                "cpu_allocation_ratio": given.cpu_ratio,
                "ram_allocation_ratio": given.ram_ratio,
            }
        }
        if given.networks is not None:
            found[key]["numa_topology"]["network_metadata"] = {  # type: ignore[assignment]
                "physnets": sorted(given.networks.physnets),
                "tunneled": given.networks.tunneled,
            }
    return found


def differences_after(host: placements.Host, state: dict[str, Any]) -> Iterator[str]:
    if "numa" in state and cells_in_use(host.topology) != state["numa"]:
        yield f"cells of {host.key}"
    if "pci" in state and unordered(host.pools.to_dicts()) != unordered(state["pci"]):
        yield f"devices of {host.key}"


def unordered(pools: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(pool, sort_keys=True) for pool in pools)
