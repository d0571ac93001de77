"""One line per case, and differences."""

import pytest

from scheduler import errors
from scheduler.evaluation.outcome import GENTLER, NOTHING_EXPECTED, REASONS, outcome_of
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
