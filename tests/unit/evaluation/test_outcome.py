"""One line per case, what counts as a difference, and how it is told."""

import pytest

from scheduler import errors
from scheduler.evaluation.outcome import GENTLER, NOTHING_EXPECTED, REASONS, differences, outcome_of
from tests.unit.evaluation.builders import UUIDS, a_case, a_fleet

EXPECT = {"passed": [["h1", "h1"]], "selected": [["h1", "h1"]]}


def test_a_disagreement_is_reported():
    expect = {"passed": [["h1", "h1"]], "limits": {"h1/h1": {"memory_mb": 8192.0}}, **EXPECT}
    case = a_case(a_fleet(4096), instance_uuids=UUIDS[:2], expect=expect)
    outcome = outcome_of(case)
    assert outcome.line["selected"] == [["h1", "h1"], ["h1", "h1"]]
    assert outcome.differences == [
        "as 2026: selected: [['h1', 'h1'], ['h1', 'h1']], expected [['h1', 'h1']]"
    ]


@pytest.mark.parametrize(
    "wrong", [{"now": "noon"}, {"now": 5}, {"config": []}, {"steps": 5}, {"expect": 5}], ids=str
)
def test_a_case_of_another_form_is_named(wrong):
    with pytest.raises(errors.BadCase, match="suite/d1: not a case, or a fault of this program: "):
        outcome_of({**a_case(a_fleet(1)), **wrong})


def test_a_case_without_expectation():
    outcome = outcome_of(a_case(a_fleet(4096)))
    assert outcome.differences == [NOTHING_EXPECTED]


@pytest.mark.parametrize(
    ("name", "is_crash", "reason"),
    [
        ("suite/d0001", False, None),
        ("suite/d0001", True, GENTLER),
        ("host_state_rows/d0011", False, REASONS["host_state_rows/d0011"]),
    ],
)
def test_what_counts_as_decided_otherwise_on_purpose(name, is_crash, reason):
    outcome = outcome_of(a_case(a_fleet(1), name=name, expect={"crash": is_crash}))
    assert outcome.reason_for_difference == reason


A, B = ["a", "a"], ["b", "n"]
ANSWER = {
    "filters": [{"name": "F", "passed": [A, B]}, {"name": "G", "passed": [A]}],
    "passed": [A],
    "limits": {"a/a": {"memory_mb": 1.5}},
    "weights": {"a/a": 0.25},
    "selected": [A],
    "alternates": [[B]],
    "state_after": {"a/a": {"free_ram_mb": 7, "pci": [{"x": 1}, {"y": 2}], "numa": [{"id": 0}]}},
}
FAILED = {"filters": [{"name": "F", "passed": []}], "passed": [], "error": "NoValidHost"}
CRASH, INVALID = {"error": "KeyError", "crash": True}, {"error": "InvalidRequest"}
STARTUP = {"error": "ImportError", "stage": "startup"}


def changed(**values):
    whole = {**ANSWER, **values}
    return {name: value for name, value in whole.items() if value is not None}


def ran(**passed):
    return {"filters": [{"name": name, "passed": left} for name, left in passed.items()]}


def with_state(**values):
    return changed(state_after={"a/a": {**ANSWER["state_after"]["a/a"], **values}})


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (ANSWER, ANSWER),
        (FAILED, FAILED),
        (changed(selected=None, alternates=None, state_after=None), ANSWER),
        (changed(weights=None, passed=None, filters=None), ANSWER),
        (changed(weights={"a/a": 0.25 * (1 + 9e-7)}), ANSWER),
        (changed(weights={"a/a": 0.0}), changed(weights={"a/a": 1e-15})),
        (with_state(pci=[{"y": 2}, {"x": 1}]), ANSWER),
        ({**FAILED, "filters": []}, FAILED),
        (FAILED, {**FAILED, "filters": []}),
        (CRASH, {"error": "InvalidRequest", "crash": True}),
        (CRASH, {"error": "ComputeHostMetricNotFound"}),
        (STARTUP, {"error": "ConfigurationError", "stage": "startup"}),
        ({"steps": [{}, ANSWER]}, {"steps": [{}, ANSWER]}),
    ],
)
def test_agreement(expected, answer):
    assert differences(expected, answer) == []


@pytest.mark.parametrize(
    ("expected", "answer", "lines"),
    [
        (ANSWER, changed(**ran(F=[A], G=[])), ["F: 1 hosts, expected 2: -b/n"]),
        (ANSWER, changed(**ran(F=[A, B], H=[])), ["filters: H ran, expected G"]),
        (ANSWER, changed(**ran(F=[A, B])), ["filters: none ran, expected G"]),
        (ANSWER, changed(passed=[B]), ["passed: 1 hosts, expected 1: +b/n -a"]),
        (ANSWER, changed(weights={"a/a": 0.25001}), ["weights a/a: 0.25001, expected 0.25"]),
        (ANSWER, changed(weights={"a/a": 0.25, "b": 0}), ["weights b: 0, expected None"]),
        (ANSWER, changed(limits={"a/a": {}}), ["limits a/a memory_mb: None, expected 1.5"]),
        (changed(limits=None), ANSWER, ["limits a/a: {'memory_mb': 1.5}, expected None"]),
        (ANSWER, changed(selected=[B]), ["selected: [['b', 'n']], expected [['a', 'a']]"]),
        (ANSWER, changed(selected=None), ["selected: None, expected [['a', 'a']]"]),
        (ANSWER, changed(alternates=[[]]), ["alternates: [[]], expected [[['b', 'n']]]"]),
        (ANSWER, with_state(free_ram_mb=8), ["state_after a/a free_ram_mb: 8, expected 7"]),
        (ANSWER, with_state(numa=[{"id": 1}]), ["state_after a/a numa 0 id: 1, expected 0"]),
        (FAILED, {**FAILED, **INVALID}, ["error: InvalidRequest, expected NoValidHost"]),
        (CRASH, FAILED, ["error: NoValidHost, expected the request to be refused as in KeyError"]),
        (CRASH, ANSWER, ["error: none, expected the request to be refused as in KeyError"]),
        (STARTUP, ANSWER, ["error: none, expected ImportError at the start"]),
        (ANSWER, STARTUP, ["error: ImportError at the start, expected none"]),
        ({"steps": [{}]}, STARTUP, ["error: ImportError at the start, expected none"]),
        ({"steps": [{}]}, {"steps": []}, ["steps: 0, expected 1"]),
        ({"steps": [{}, ANSWER]}, {"steps": [{}, changed(passed=[])]}, ["step 1: passed: 0 hosts"]),
    ],
)
def test_difference(expected, answer, lines):
    found = differences(expected, answer)
    assert [text[: len(line)] for text, line in zip(found, lines, strict=True)] == lines
