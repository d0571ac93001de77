"""Outcomes of cases; those that differ on purpose are listed (docs/compatibility.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import errors
from scheduler.evaluation import comparing
from scheduler.evaluation.cases import OF_LABEL, Case
from scheduler.evaluation.comparing import Answer
from scheduler.evaluation.deciding import decide

NOTHING_EXPECTED = "the case says nothing of what to expect"
#: A case that is marked as an unhandled exception of Nova and is not listed by name.
GENTLER = (
    "Nova fails there with an unhandled exception, which one odd host or document is not worth; "
    "the request gets its answer"
)

#: By reason, the cases of each suite.
_LISTED: Mapping[str, Mapping[str, str]] = {
    "the request is in the old form of server groups, which cannot carry the rule "
    "max_server_per_host that the recorded decision rests on": {
        "filter_server_group_anti_affinity": "d0139 d0172"
    },
    "a statistic of one host that is not a number, or a document of it that is not of its kind, "
    "counts as none there; it does not fail every request": {
        "host_state_rows": "d0011 d0013 d0014 d0017 d0021 d0026 d0028 d0043 d0047 d0054 d0065 "
        "d0081 d0083 d0088 d0106 d0111 d0120 d0125 d0129 d0132 d0138 d0147"
    },
    "a host that never filled in its row is judged as one that has nothing; it does not fail every "
    "request": {
        "chain_2026_default": "d0060 d0064 d0101 d0132 d0145 d0197",
        "chain_newton_mixed": "d0027",
        "chain_shared_mixed": "d0047 d0165",
    },
    "servers placed earlier by the same request are weighed by their image like all others; Nova "
    "fails on them": {
        "weights_all_2026": "d0009 d0018 d0020 d0028 d0048 d0051 d0067 d0091 d0118 d0136 d0145 "
        "d0168 d0175 d0182 d0199 d0235 d0239 d0240 d0248"
    },
}

#: By the name of the case.
REASONS: Mapping[str, str] = {
    f"{suite}/{case}": reason
    for reason, suites in _LISTED.items()
    for suite, cases in suites.items()
    for case in cases.split()
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line to write, and how it differs from what was recorded."""

    name: str
    suite: str
    line: Mapping[str, Any]
    differences: list[str]
    #: The reason why the case is decided otherwise on purpose, if it is.
    reason_for_difference: str | None
    #: The reason that the case cannot be decided, if it does not expect that itself.
    failure: str | None


def outcome_of(case: Case) -> Outcome:
    """Decide *case* as its label says; BadCase if something in it is of another form."""
    try:
        answers = {each.name: decide(case, each) for each in OF_LABEL[case["semantics"]]}
        return _outcome(case, answers)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"not a case, or a fault of this program: {error!r}"
        raise errors.BadCase(place=case["name"], reason=reason) from error


def _outcome(case: Case, answers: Mapping[str, Answer]) -> Outcome:
    name, expected = case["name"], case.get("expect") or {}
    failures = [
        f"{each['error']}: {each['message']}"
        for answer in answers.values()
        for each in answer.get("steps", [answer])
        if "message" in each
    ]
    return Outcome(
        name,
        case["suite"],
        {"name": name, **next(iter(answers.values()))},
        _differences(case.get("expect"), answers),
        REASONS.get(name) or (GENTLER if expected.get("crash") else None),
        failures[0] if failures and "error" not in expected else None,
    )


def _differences(expected: Mapping[str, Any] | None, answers: Mapping[str, Answer]) -> list[str]:
    """Differences of the answers from what was recorded; those that all share come once."""
    if expected is None:
        return [NOTHING_EXPECTED]
    found = {name: comparing.differences(expected, answer) for name, answer in answers.items()}
    if len({tuple(lines) for lines in found.values()}) == 1:
        return next(iter(found.values()))
    return [f"as {name}: {line}" for name, lines in found.items() for line in lines]
