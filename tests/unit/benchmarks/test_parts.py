"""Reading workloads, percentiles, expressions, tables."""

import pytest

from benchmarks import expression, report, row_by_row, runner, workload
from benchmarks.fleet import FleetPlan, rows
from benchmarks.sample import Sample, percentile

pytestmark = pytest.mark.slow

MEASURED = {"a": {"rate": [4.0, 8.0, 6.0]}, "b": {"rate": [2.0, 2.0, 1.0]}}


def content(**changes):
    return {
        "about": "something",
        "common": {"run": "decision", "fleet": {"hosts": 10, "mix": "plain"}},
        "subjects": {"a": {"fleet": {"hosts": 20}}, "b": None},
        "rows": [{"what": "a to b", "value": "a.rate / b.rate", "at_least": 2}],
        **changes,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a.rate", 6.0), ("a.rate / b.rate", 4.0), ("1000 / (a.rate - b.rate)", 200.0)],
)
def test_a_row_is_the_median_of_its_rounds(text, expected):
    assert expression.value(text, MEASURED) == expected


@pytest.mark.parametrize("text", ["", "1 + 2", "a.rate ** 2", "open('x')", "a.rate[0]", "a.b.c"])
def test_anything_else_is_no_expression(text):
    with pytest.raises(ValueError):
        expression.subjects(text)


@pytest.mark.parametrize(("share", "expected"), [(50, 5), (90, 9), (99, 10), (100, 10)])
def test_percentiles(share, expected):
    assert percentile(list(range(1, 11)), share) == expected


def test_metrics_of_a_round():
    metrics = Sample([0.001, 0.003], elapsed=0.5, count=10, more={"changed_rows": 3.0}).metrics()
    assert metrics.pop("mean_ms") == pytest.approx(2)
    expected = {"rate": 20, "p50_ms": 1, "p99_ms": 3, "changed_rows": 3}
    assert expected.items() <= metrics.items()


def test_settings_of_a_subject_replace_the_common_ones():
    parsed = workload.parse("w", content())
    fleets = [each["fleet"] for each in parsed.subjects.values()]
    assert fleets == [{"hosts": hosts, "mix": "plain"} for hosts in (20, 10)]
    some = parsed.only(["b"])
    assert (list(some.subjects), some.rows) == (["b"], ())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"rounds": 4}, "rounds"),
        ({"rows": [{"what": "x", "value": "c.rate"}]}, "no subject c"),
        ({"rows": [{"what": "x", "value": "1"}]}, "rows: x"),
        ({"rows": [{"what": "x", "value": "a.rate", "at": 1}]}, "unexpected keyword"),
        ({"same_answers": [["a", "z"]]}, "no subject z"),
        ({"common": {}}, "run is missing"),
        ({"subjects": None}, "w: "),
    ],
)
def test_a_mistake_is_named(changes, complaint):
    with pytest.raises(workload.WorkloadError, match=complaint):
        workload.parse("w", content(**changes))


def test_what_does_not_exist_is_named():
    with pytest.raises(workload.WorkloadError, match="there are: .*decision"):
        workload.load("no-such")
    wrong = workload.parse("w", content(common={"run": "no-such"}))
    with pytest.raises(workload.WorkloadError, match="no-such"):
        runner.run(wrong)


@pytest.mark.parametrize(
    ("value", "verdict"), [(3.0, "| met |"), (1.0, "| **missed** (0.50 of the target) |")]
)
def test_a_row_says_how_much_is_missed(value, verdict):
    row = {"what": "x", "value": value, "unit": "×", "at_least": 2, "at_most": None}
    table = report.table([{"rows": [{**row, "met": value >= 2}]}])
    assert table.splitlines()[-1].endswith(verdict)
    assert "≥ 2 ×" in table


def test_answers_that_differ_end_the_run(monkeypatch):
    tiny = workload.load("decision").at_tiny_size().only(["at_10000", "rows"])
    monkeypatch.setattr(row_by_row, "decide", lambda hosts, *_rest: None)
    with pytest.raises(runner.AnswersDiffer):
        runner.run(tiny)


def test_a_fleet_is_the_same_every_time():
    plan = FleetPlan(hosts=30, mix="realistic", instances_per_host=1)
    first = rows(plan)
    rows.cache_clear()
    assert rows(plan) == first
    assert len({node["stats"] for node in first["compute_nodes"]}) == 30
