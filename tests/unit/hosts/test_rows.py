"""From rows to values: what NULL, 0 and odd values mean."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.evaluation.fleet import CaseFleet, moment
from scheduler.hosts import rows
from scheduler.hosts.rows import Ratios
from tests.unit.evaluation.builders import NOW, a_node

RATIOS = Ratios(cpu=16.0, ram=1.5, disk=1.0)
MORE = "Host h1 has more disk space than database expected (100 GB > 90 GB)"


def read(**columns: Any) -> dict[str, Any]:
    fleet = CaseFleet({"compute_nodes": [a_node("h1", **columns)]})
    return rows.values(fleet.read(moment(NOW))[0].nodes[0], RATIOS, "c1")


@pytest.mark.parametrize(
    ("free_gb", "least_gb", "expected_gb", "told"),
    [
        (90, None, 90, []),
        (90, 50, 50, []),
        (90, 90, 90, []),
        (90, 0, 0, []),  # a value like any other
        (90, -10, -10, []),
        (-20, -10, -20, ["Host h1 has more disk space than database expected (-10 GB > -20 GB)"]),
        (90, 100, 90, [MORE]),
        (0, None, 0, []),
    ],
)
def test_free_disk(
    free_gb: int, least_gb: int | None, expected_gb: int, told: list[str], caplog: Any
) -> None:
    found = read(free_disk_gb=free_gb, disk_available_least=least_gb)
    assert (found["free_disk_mb"], found["reported"]) == (expected_gb * 1024, True)
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == told


@pytest.mark.parametrize(
    ("text", "expected", "complaints"),
    [
        ('{"num_instances": "3", "io_workload": "2", "failed_builds": "1"}', [3, 2, 1], 0),
        ('{"num_instances": 3}', [3, 0, 0], 0),
        ('{"num_instances": "2.0", "io_workload": "2"}', [0, 2, 0], 1),
        ('{"num_instances": null}', [0, 0, 0], 1),
        ("{}", [0, 0, 0], 0),
        ("[]", [0, 0, 0], 0),
        ("{", [0, 0, 0], 0),
        ("", [0, 0, 0], 0),
        (None, [0, 0, 0], 0),
    ],
)
def test_counts(text: str | None, expected: list[int], complaints: int, caplog: Any) -> None:
    found = read(stats=text)
    counts = [found[name] for name in ("num_instances", "num_io_ops", "failed_builds")]
    assert counts == expected
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == complaints


@pytest.mark.parametrize(("ratio", "expected"), [(None, 1.5), (0.0, 1.5), (0.9, 0.9), (2.0, 2.0)])
def test_ratios(ratio: float | None, expected: float) -> None:
    assert read(ram_allocation_ratio=ratio)["ram_allocation_ratio"] == expected


def test_a_row_never_filled_in_says_nothing_but_who_it_is() -> None:
    found = read(free_disk_gb=None, free_ram_mb=4096)
    assert found.keys() == {"node_id", "uuid", "cell_uuid", "updated_at", "reported"}
    assert not found["reported"]
