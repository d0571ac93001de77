"""What became of the inputs of one target."""

from __future__ import annotations

import collections
import re
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.verdicts import Verdict, most_seconds

MOST_SHOWN = 20
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\b\d+\.\d+ s\b")


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
        """How many there were."""
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
