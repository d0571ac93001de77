"""Where the time of a subject goes, on request."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Callable

from benchmarks.sample import Sample

LINES = 30


class Profiler:
    """Profiles the rounds of each subject in this process; daemons are not seen."""

    def __init__(self) -> None:
        self._profiles: dict[str, cProfile.Profile] = {}

    def run(self, name: str, work: Callable[[float], Sample], seconds: float) -> Sample:
        """One round of subject *name* under the profiler."""
        profile = self._profiles.setdefault(name, cProfile.Profile())
        return profile.runcall(work, seconds)

    def report(self) -> str:
        """Per subject the functions that took the most time of their own."""
        text = io.StringIO()
        for name, profile in self._profiles.items():
            text.write(f"=== {name}\n")
            pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(LINES)
        return text.getvalue()
