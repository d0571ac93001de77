"""Outcomes of cases, compared with what was recorded as far as that goes.

Those that differ on purpose are listed (docs/compatibility.md).
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import errors
from scheduler.evaluation.cases import OF_LABEL, Answer, Case
from scheduler.evaluation.deciding import decide

RELATIVE_TOLERANCE = 1e-6
#: For weights that are 0.0 but for rounding.
ABSOLUTE_TOLERANCE = 1e-12
NO_VALID_HOST = "NoValidHost"

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
        _judged(case.get("expect"), answers),
        REASONS.get(name) or (GENTLER if expected.get("crash") else None),
        failures[0] if failures and "error" not in expected else None,
    )


def _judged(expected: Mapping[str, Any] | None, answers: Mapping[str, Answer]) -> list[str]:
    """Differences of the answers from what was recorded; those that all share come once."""
    if expected is None:
        return [NOTHING_EXPECTED]
    found = {name: differences(expected, answer) for name, answer in answers.items()}
    if len({tuple(lines) for lines in found.values()}) == 1:
        return next(iter(found.values()))
    return [f"as {name}: {line}" for name, lines in found.items() for line in lines]


def differences(expected: Mapping[str, Any], answer: Answer) -> list[str]:
    """One line per difference between what was *expected* and the *answer*; empty if they agree."""
    if "steps" not in expected:
        return list(_of_request(expected, answer))
    recorded, answered = expected["steps"], answer.get("steps")
    if answered is None:
        return [f"error: {answer.get('error')} at the start, expected none"]
    if len(recorded) != len(answered):
        return [f"steps: {len(answered)}, expected {len(recorded)}"]
    return [
        f"step {number}: {line}"
        for number, (wanted, given) in enumerate(zip(recorded, answered, strict=True))
        for line in _of_request(wanted, given)
    ]


def _nested(place: str, expected: Any, answer: Any) -> Iterator[str]:
    """Every leaf of mappings, and of lists of them, that differs; PCI pools come in no order.

    Only weights may differ a little, by the tolerances.
    """
    if isinstance(expected, dict) and isinstance(answer, dict):
        for name in sorted(expected.keys() | answer.keys()):
            wanted, given = _in_order(name, expected.get(name)), _in_order(name, answer.get(name))
            yield from _nested(f"{place} {name}", wanted, given)
    elif _are_mappings(expected) and _are_mappings(answer) and len(expected) == len(answer):
        for number, (wanted, given) in enumerate(zip(expected, answer, strict=True)):
            yield from _nested(f"{place} {number}", wanted, given)
    elif expected != answer and not (place.startswith("weights ") and _are_close(expected, answer)):
        yield f"{place}: {answer}, expected {expected}"


def _in_order(name: str, value: Any) -> Any:
    if name == "pci" and isinstance(value, list):
        return sorted(value, key=lambda pool: sorted(map(str, pool.items())))
    return value


def _are_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _are_close(wanted: Any, given: Any) -> bool:
    are_floats = isinstance(wanted, float) and isinstance(given, float)
    tolerances = {"rel_tol": RELATIVE_TOLERANCE, "abs_tol": ABSOLUTE_TOLERANCE}
    return are_floats and math.isclose(wanted, given, **tolerances)


def _of_request(expected: Mapping[str, Any], answer: Answer) -> Iterator[str]:
    error, wanted = answer.get("error"), expected.get("error")
    if expected.get("crash"):
        if error in (None, NO_VALID_HOST):
            yield f"error: {error or 'none'}, expected the request to be refused as in {wanted}"
        return
    at_start, at_start_wanted = answer.get("stage"), expected.get("stage")
    if at_start and at_start_wanted:
        return
    yield from _nested("error", _error(expected), _error(answer))
    if not (at_start or at_start_wanted):
        yield from _of_decision(expected, answer)


def _of_decision(expected: Mapping[str, Any], answer: Answer) -> Iterator[str]:
    if "filters" in expected:
        yield from _filters(expected["filters"], answer.get("filters", []))
    if "passed" in expected and expected["passed"] != answer.get("passed"):
        yield f"passed: {_hosts(expected['passed'], answer.get('passed') or [])}"
    if "error" not in expected or "limits" in expected:
        yield from _nested("limits", expected.get("limits", {}), answer.get("limits", {}))
    is_placed = not (answer.get("error") or expected.get("error"))
    for name in ("weights", *(("selected", "alternates", "state_after") if is_placed else ())):
        if name in expected:
            yield from _nested(name, expected[name], answer.get(name))


def _error(answer: Mapping[str, Any]) -> str:
    return f"{answer.get('error') or 'none'}{' at the start' if answer.get('stage') else ''}"


def _filters(recorded: list[Any], ran: list[Any]) -> Iterator[str]:
    """The first filter that differs; without candidates it is no matter which of them ran."""
    if not any(each["passed"] for each in recorded[:1] + ran[:1]):
        return
    none: dict[str, Any] = {"name": "none", "passed": []}
    for wanted, given in itertools.zip_longest(recorded, ran, fillvalue=none):
        if wanted["name"] != given["name"]:
            yield f"filters: {given['name']} ran, expected {wanted['name']}"
            return
        if wanted["passed"] != given["passed"]:
            yield f"{given['name']}: {_hosts(wanted['passed'], given['passed'])}"
            return


def _hosts(wanted: list[Any], given: list[Any]) -> str:
    more = [_name(each) for each in given if each not in wanted]
    fewer = [_name(each) for each in wanted if each not in given]
    changes = [*(f"+{name}" for name in more), *(f"-{name}" for name in fewer)]
    return f"{len(given)} hosts, expected {len(wanted)}: {' '.join(changes) or 'other order'}"


def _name(pair: list[Any]) -> str:
    host, node = pair
    return str(host) if node in (None, host) else f"{host}/{node}"
