"""What may become of an input, and what may not."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from scheduler import errors
from tests.fuzz.world import Answer

MOST_SECONDS = 1.0
"""Of processor time, for any input, unless MOST_SECONDS_VARIABLE of the environment says more."""
MOST_SECONDS_VARIABLE = "FUZZ_MOST_SECONDS"

MOST_TOLD = 2000
"""Characters of an error: what is wrong with a long text is told without all of the text."""

ACCEPTED, DROPPED = "accepted", "dropped"
NO_HOST = frozenset({"NoValidHost"})
BY_LIBRARY = frozenset({"TypeError", "NoSuchMethod", "UnsupportedVersion"})
"""What Nova's services answer to an unknown method, version or argument."""
BY_NAME = frozenset(
    {"InvalidRequest", "IncompatibleObjectVersion", "UnsupportedObjectError"}
    | {"UnsupportedPolicyException", "ComputeHostNotFound"}
)
KINDS = NO_HOST | BY_LIBRARY | BY_NAME
FAULT = "internal fault"


@dataclass(frozen=True)
class Verdict:
    """What became of one input; *violation* says what must not be, if it is."""

    kind: str
    seconds: float
    violation: str | None = None


def most_seconds() -> float:
    """Of processor time, for any input."""
    return float(os.environ.get(MOST_SECONDS_VARIABLE, MOST_SECONDS))


def of_answer(answer: Answer, names: Collection[str] = ()) -> Verdict:
    """The verdict on an answer; a refusal must name one of *names*, if there are any."""
    kind, violation = _kind(answer, names)
    if answer.seconds > most_seconds():
        violation = violation or f"{answer.seconds:.2f} s"
    return Verdict(kind, answer.seconds, violation)


def _kind(answer: Answer, names: Collection[str]) -> tuple[str, str | None]:
    if answer.is_dropped:
        return DROPPED, None
    failure = answer.failure
    if failure is None:
        return ACCEPTED, None
    is_fault = failure["kwargs"].get("error_code") == errors.INTERNAL_FAULT
    kind = FAULT if is_fault and "fault_id" in failure["kwargs"] else str(failure["class"])
    complaint = next(_complaints(kind, failure, names), None)
    told = f"{failure['class']}: {failure['message']}"
    if kind == FAULT:
        told = f"{told} at {answer.fault_at}"
    return kind, None if complaint is None else f"{complaint}: {told}"


def _complaints(kind: str, failure: dict[str, Any], names: Collection[str]) -> Iterator[str]:
    if kind == FAULT:
        yield kind
    elif kind not in KINDS:
        yield "an error of another kind, without an id"
    if _has_traceback(failure):
        yield f"a traceback {failure['tb']}"
    if kind == "InvalidRequest" and not failure["kwargs"].get("field"):
        yield "no field"
    if len(failure["message"]) > MOST_TOLD:
        yield f"{len(failure['message'])} characters"
    if names and kind not in NO_HOST and not any(name in failure["message"] for name in names):
        yield f"names none of {sorted(names)}"


def _has_traceback(failure: dict[str, Any]) -> bool:
    return len(failure["tb"]) != 1 or failure["tb"][0].startswith("Traceback")
