"""The workloads that need no servers, at a size of seconds: they run and compare like with like."""

import math
import re

import pytest

from benchmarks import report, row_by_row, runner, workload

pytestmark = pytest.mark.slow


def needs_more(name):
    tiny = workload.load(name).at_tiny_size()
    return tiny.needs_servers or tiny.needs_nova


def leaks(name, **given):
    """Run it; what it has left behind."""
    result = runner.run(workload.load(name).at_tiny_size(), **given)
    assert {row["what"] for row in result["rows"] if not math.isfinite(row["value"])} == set()
    assert result["leaks"]["processes"] == 0
    found = result["leaks"]
    return found


@pytest.mark.parametrize("name", [name for name in workload.names() if not needs_more(name)])
def test_a_workload_runs(name):
    assert leaks(name)["fds"] <= 0  # what earlier tests have left may go meanwhile


@pytest.mark.parametrize("name", workload.names())
def test_a_workload_is_well_formed(name):
    loaded = workload.load(name)
    assert loaded.rows
    assert loaded.tiny, "a test needs a size of its own"


def test_the_page_has_a_place_for_every_workload():
    places = re.findall(r"<!-- begin subjects (\S+)", report.PAGE.read_text(encoding="utf-8"))
    assert sorted(set(places)) == workload.names()


def test_answers_that_differ_end_the_run(monkeypatch):
    tiny = workload.load("decision").at_tiny_size().only(["at_10000", "rows"])
    monkeypatch.setattr(row_by_row, "decide", lambda hosts, *_rest: None)
    with pytest.raises(runner.AnswersDiffer):
        runner.run(tiny)
