"""The worked examples of the reference page agree, under Newton's and under today's rules."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import numa
from tests.unit.numa import examples

#: We read what Nova refuses: objects of any minor version, and today also the oldest text form.
READ_ANYWAY = {
    "newton": {"host_json_too_new"},
    "later": {"host_json_too_new", "host_json_legacy", "host_json_empty_object"},
}
#: Plain Python errors of Nova, for which we name the field.
BUILTIN_ERRORS = {"ValueError", "TypeError", "KeyError"}


def comparable(result: dict[str, Any], later: bool) -> dict[str, Any]:
    """One form for both releases (section 13): CPU sets united, no topology shown later."""
    shown = dict(result)
    for key in ("topology", "cells"):
        cells = shown.get(key)
        if cells is not None:
            shown[key] = [one_cell(cell, later) for cell in cells]
    if "steps" in shown:
        shown["steps"] = [
            {**step, "request_topology": cells_of(step["request_topology"], later)}
            for step in shown["steps"]
        ]
    if shown.get("error") in BUILTIN_ERRORS:
        shown["error"] = "InvalidRequest"
    return shown


def cells_of(cells: list[dict[str, Any]] | None, later: bool) -> list[dict[str, Any]] | None:
    return None if cells is None else [one_cell(cell, later) for cell in cells]


def one_cell(cell: dict[str, Any], later: bool) -> dict[str, Any]:
    shown = {key: value for key, value in cell.items() if not (later and key == "cpu_topology")}
    if "pcpuset" in shown:
        shown["cpuset"] = sorted({*shown["cpuset"], *shown.pop("pcpuset")})
    return shown


def named(entries: list[dict[str, Any]], skipped: set[str]) -> list[Any]:
    return [pytest.param(e, id=e["name"]) for e in entries if e["name"] not in skipped]


@pytest.mark.parametrize("example", named(examples.CONTENT["examples"], READ_ANYWAY["newton"]))
def test_newton(example: dict[str, Any]) -> None:
    found = examples.run(example, numa.NEWTON)
    expected = example["expect"]
    if expected.get("error") == "ValueError" and "thread" in example["name"]:
        # A refusal of its own name is clearer, and what later releases give.
        expected = {"error": "InvalidCPUThreadAllocationPolicy"}
    assert comparable(found, later=False) == comparable(expected, later=False)


@pytest.mark.parametrize("example", named(examples.CONTENT["examples"], READ_ANYWAY["later"]))
def test_current(example: dict[str, Any]) -> None:
    expected = {**example["expect"], **example["later_differs"]}
    for key in example.get("later_absent", ()):
        del expected[key]
    found = examples.run(example, numa.CURRENT)
    assert comparable(found, later=True) == comparable(expected, later=True)


@pytest.mark.parametrize("example", named(examples.CONTENT["later_only"], set()))
def test_current_only(example: dict[str, Any]) -> None:
    found = examples.run(example, numa.CURRENT)
    assert comparable(found, later=True) == comparable(example["expect"], later=True)


@pytest.mark.parametrize("name", sorted(READ_ANYWAY["later"]))
def test_read_anyway(name: str) -> None:
    (example,) = (e for e in examples.CONTENT["examples"] if e["name"] == name)
    assert "cells" in examples.run(example, numa.CURRENT)
