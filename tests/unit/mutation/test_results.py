"""Which mutants are tried, and what is said of those that survive."""

from __future__ import annotations

import pytest

from tests.house.tree import ROOT
from tests.mutation import results
from tests.mutation.results import Outcome, Survivor
from tests.mutation.rooms import ROOMS, chosen, drawn

OUTCOMES = {
    "scheduler/a.py": Outcome(
        *("one", "0a1b2c", 9, 5, 3, 1),
        [Survivor("a.x_f__mutmut_1", "f", "if a < b:", "if a <= b:", untested=True)],
    ),
    "scheduler/b.py": Outcome("one", "3d4e5f", 0, 0, 0, 0),
}


def test_all_modules_without_names():
    picked = chosen([], ROOT)

    assert [room.name for room, _files in picked] == [room.name for room in ROOMS]
    assert all(files for _room, files in picked)


@pytest.mark.parametrize(
    ("names", "picked"),
    [
        (["weights"], [("weights", None)]),
        (
            ["scheduler/hosts/books.py", "scheduler/claims/books.py"],
            [("ledger", ["scheduler/claims/books.py"]), ("refresh", ["scheduler/hosts/books.py"])],
        ),
    ],
)
def test_some_modules(names, picked):
    found = chosen(names, ROOT)

    assert [room.name for room, _files in found] == [name for name, _files in picked]
    for (room, files), (_name, wanted) in zip(found, picked, strict=True):
        assert files == (wanted or room.files(ROOT))


def test_a_name_of_nothing():
    with pytest.raises(ValueError, match=r"neither a room nor a module of one: nope$"):
        chosen(["weights", "nope"], ROOT)


def test_the_same_are_drawn_every_time():
    names = [f"m{number}" for number in range(100)]

    some = drawn("scheduler/a.py", names, 10)

    assert some == drawn("scheduler/a.py", names, 10)
    assert some == sorted(some, key=names.index)
    assert len(set(some)) == 10
    assert some != drawn("scheduler/b.py", names, 10)
    assert drawn("scheduler/a.py", names, 100) == names


def test_results_are_kept(tmp_path):
    path = tmp_path / "results.json"
    assert results.load(path) == {}

    results.save(OUTCOMES, path)

    assert results.load(path) == OUTCOMES


@pytest.mark.parametrize(
    ("accepted", "heading"),
    [
        ([], results.UNJUDGED),
        ([{"why": "Too slow", "mutants": ["a < c", "a < b: → if a <= b"]}], "Too slow"),
        ([{"why": "Too slow", "mutants": ["b\\.py"]}], results.UNJUDGED),
    ],
)
def test_the_page_has_figures_and_survivors(accepted, heading):
    lines = results.page(OUTCOMES, accepted).splitlines()

    assert "| `scheduler/a.py` | 9 | 5 | 3 | 1 | 1 | 80.0 % |" in lines
    assert "| `scheduler/b.py` | 0 | 0 | 0 | 0 | 0 | 100.0 % |" in lines
    assert "| **one** | 9 | 5 | 3 | 1 | 1 | 80.0 % |" in lines
    assert lines[-5:] == [
        f"### {heading} (1)",
        "",
        "```text",
        "scheduler/a.py f: if a < b: → if a <= b: (no test)",
        "```",
    ]


def test_the_page_is_that_of_the_results():
    accepted = results.accepted()

    assert results.PAGE.read_text(encoding="utf-8") == results.page(results.load(), accepted)
