"""Comparing an answer with a recorded one, as far as the recording goes."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

Answer = dict[str, Any]

RELATIVE_TOLERANCE = 1e-6
#: For weights that are 0.0 but for rounding.
ABSOLUTE_TOLERANCE = 1e-12
NO_VALID_HOST = "NoValidHost"


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
