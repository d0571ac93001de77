"""Results are kept, and the page is written from them."""

import re

import pytest

from benchmarks import report, workload
from tests.world import machine

pytestmark = pytest.mark.slow


def a_result(name, **changes):
    row = {"what": "a row", "value": 2.0, "unit": "×", "at_least": 1, "at_most": None, "met": True}
    metrics = {"rate": [9.0, 10.0, 11.0], "p50_ms": [1.0], "p90_ms": [2.0], "p99_ms": [3.0]}
    return {
        "workload": name,
        "about": "about it",
        "machine": machine.notes(),
        "rounds": 5,
        "seconds": 0.5,
        "took_seconds": 3.0,
        "settings": {"one": {"fleet": {"hosts": 10}}, "two": {"fleet": {"hosts": 20}}},
        "subjects": {"one": metrics, "two": metrics},
        "rows": [row],
        "peak_rss_mib": 100.0,
        "leaks": {"fds": 0, "processes": 0},
        **changes,
    }


def test_the_newest_result_of_a_workload_is_kept(tmp_path):
    path = tmp_path / "results" / "all.json"
    report.merge(a_result("b"), ["a", "b"], path)
    report.merge(a_result("a"), ["a", "b"], path)
    kept = report.merge(a_result("b", took_seconds=7.0), ["a", "b"], path)
    assert list(kept) == ["a", "b"]
    assert report.load(path)["b"]["took_seconds"] == 7.0


def test_only_what_is_between_the_markers_is_written(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "before\n<!-- begin results -->\nold\n<!-- end results -->\nbetween\n"
        "<!-- begin subjects a -->\n<!-- end subjects a -->\nafter\n",
        encoding="utf-8",
    )
    for _twice in range(2):
        report.write_page(path, [a_result("a"), a_result("without-markers")])
    text = path.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.count("| a row | ≥ 1 × | 2 × | met |") == 2
    assert text.count("| one | 10 | 1 | 2 | 3 |") == 1
    assert [word for word in ("before", "between", "after") if f"{word}\n" not in text] == []


def test_the_page_has_a_place_for_every_workload():
    places = re.findall(r"<!-- begin subjects (\S+)", report.PAGE.read_text(encoding="utf-8"))
    assert sorted(set(places)) == workload.names()
