"""Long runs: what has passed is not run again, and pages are written when all has passed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests import nightly
from tests.nightly import Night, Part

pytestmark = pytest.mark.slow

PASSES = ("json.tool", "--help")


@pytest.fixture(autouse=True)
def one_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = {**nightly.machine.notes(), "revision": "abc"}
    monkeypatch.setattr(nightly.machine, "notes", lambda: notes)


def test_a_rerun_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    def run(minutes: float = 1, **units: tuple[str, ...]) -> bool:
        night = Night("some", Part(units), tmp_path / "state", tmp_path / "pages")
        return night.run(time.monotonic() + 60 * minutes)

    page = tmp_path / "pages/some.md"
    assert not run(one=PASSES, two=("no_such_module",))
    assert not page.exists()
    # What has passed is not run again, whatever it would do now.
    assert not run(one=("no_such_module",), two=PASSES, minutes=0)
    assert run(one=("no_such_module",), two=PASSES)
    assert "### two" in page.read_text()
    assert "revision abc" in page.read_text()
    assert not run(one=("no_such_module",), two=PASSES), "a new run"


def test_tables_with_the_same_head_become_one() -> None:
    found = [("a", "at noon\n\n| x |\n| --- |\n| 1 |\n"), ("b", "| x |\n| --- |\n| 2 |\n")]
    assert nightly._joined(found) == "| x |\n| --- |\n| 1 |\n| 2 |\n"
    assert "### a\n" in nightly._joined([*found, ("c", "3 passed\n")])


def test_the_rest_of_a_page_stays() -> None:
    page = nightly.written("x", "# X\n\nWords.\n", "1\n")
    page = nightly.written("x", page + "More.\n", "2\n")
    assert page == "# X\n\nWords.\n\n<!-- begin x -->\n2\n<!-- end x -->\nMore.\n"


def test_every_unit_is_there() -> None:
    units = [command for part in nightly.parts().values() for command in part.units.values()]
    assert len(units) > 30
    modules = {"pytest", "tests.soak", "tests.race", "tests.fuzz"}
    assert {command[0] for command in units} == {*modules, nightly._VERSIONS}
