"""What may become of an input, and what may not; what became of all inputs of one target."""

import collections
import os
import re
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from scheduler import errors
from tests.fuzz.world import Answer

MOST_SECONDS = 1.0
"""Of processor time, for any input, unless MOST_SECONDS_VARIABLE of the environment says more."""
MOST_SECONDS_VARIABLE = "FUZZ_MOST_SECONDS"

MOST_TOLD = 2000
"""Characters of an error: what is wrong with a long text is told without all of the text."""

MOST_SHOWN = 20
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b\d+\.\d+ s\b")

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
    if len(failure["tb"]) != 1 or failure["tb"][0].startswith("Traceback"):
        yield f"a traceback {failure['tb']}"
    if kind == "InvalidRequest" and not failure["kwargs"].get("field"):
        yield "no field"
    if len(failure["message"]) > MOST_TOLD:
        yield f"{len(failure['message'])} characters"
    if names and kind not in NO_HOST and not any(name in failure["message"] for name in names):
        yield f"names none of {sorted(names)}"


@dataclass
class Tally:
    """Counts of verdicts, and an example of each violation."""

    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    violations: dict[str, bytes] = field(default_factory=dict)
    slowest_seconds: float = 0.0
    over_limit: int = 0
    """Inputs that took longer than any may."""
    #: What threads died of while the input was tried out.
    _in_threads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.excepthook = lambda died: self._in_threads.append(repr(died.exc_value))

    @property
    def inputs(self) -> int:
        return sum(self.kinds.values())

    def count(self, data: bytes, try_out: Callable[[], Verdict]) -> Verdict:
        """Try an input out, and note what became of it: a crash as well."""
        try:
            verdict = try_out()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever escapes
            verdict = Verdict("crash", 0.0, _told(error))
        if self._in_threads:
            verdict = Verdict(
                verdict.kind, verdict.seconds, f"in a thread: {self._in_threads.pop()}"
            )
        self.kinds[verdict.kind] += 1
        self.over_limit += verdict.seconds > most_seconds()
        self.slowest_seconds = max(self.slowest_seconds, verdict.seconds)
        if verdict.violation and len(self.violations) < MOST_SHOWN:
            self.violations.setdefault(_IDS.sub("…", verdict.violation)[:300], data[:2000])
        return verdict

    def to_plain(self) -> dict[str, Any]:
        """What a process tells the one that started it."""
        return {
            "kinds": dict(self.kinds),
            "violations": {key: repr(data) for key, data in self.violations.items()},
            "over_limit": self.over_limit,
            "slowest_ms": self.slowest_seconds * 1000,
        }


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = ", ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
    return f"{type(error).__name__}: {error} at {places}"
