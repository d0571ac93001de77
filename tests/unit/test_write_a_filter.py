"""The commands of the page "Write a filter", as they stand."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import pytest

from scheduler.engine.evaluation import FilterChain
from tests.builders import a_fleet, a_request, candidates
from tests.builders import names as names_of
from tests.pages import WRITE_A_FILTER as PAGE
from tests.pages import commands, environment

pytestmark = pytest.mark.slow


def run(script: str, folder: pathlib.Path) -> str:
    """What the *script* prints."""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_from_copy_to_rows(tmp_path: pathlib.Path) -> None:
    assert "5 passed" in run(commands(PAGE, "copy", "rows"), tmp_path)


def test_from_copy_to_chosen(tmp_path: pathlib.Path) -> None:
    first, *summary = run(commands(PAGE, "copy", "decide"), tmp_path).splitlines()

    decided = json.loads(first)
    assert decided["filters"][-1] == {
        "name": "CalmHostsFilter",
        "passed": [["h2", "n2"], ["h3", "n3"]],
    }
    assert decided["selected"] == [["h2", "n2"], ["h3", "n3"]]
    assert any("examples" in line for line in summary)


def test_classes_of_the_page_are_importable(tmp_path: pathlib.Path) -> None:
    """Those that begin with the project's own package."""
    named = set(re.findall(r"`(scheduler(?:\.\w+)*\.[A-Z]\w+)`", PAGE.read_text()))
    assert named >= {"scheduler.drivers.Scheduler", "scheduler.weights.BaseHostWeigher"}
    imports = "\n".join("from {} import {}".format(*path.rsplit(".", 1)) for path in named)
    run(f"python - <<'END'\n{imports}\nEND\n", tmp_path)


@pytest.mark.parametrize(("number", "left"), [(0, ["h2"]), (1, ["h1"])])
def test_listings_of_the_page_are_filters(number: int, left: list[str]) -> None:
    listing = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]
    names: dict[str, Any] = {"__name__": "listing"}
    exec(listing, names)
    [cls] = [each for each in names.values() if getattr(each, "__module__", "") == "listing"]

    table = a_fleet({"node": "node-1", "num_io_ops": 2}, {"node": "node-2", "num_io_ops": 3})
    hosts, _counts = FilterChain([cls()]).run(candidates(table), a_request())
    assert names_of(hosts) == left
