"""Where the time of a subject goes, on request."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Callable
from pathlib import Path

from benchmarks.sample import Sample

LINES = 30


class Profiler:
    """Profiles the rounds of each subject in this process, and whole daemons.

    Daemons that run on threads are seen as far as their main thread goes; on eventlet all is seen.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._profiles: dict[str, cProfile.Profile] = {}

    def run(self, name: str, work: Callable[[float], Sample], seconds: float) -> Sample:
        """One round of subject *name* under the profiler."""
        profile = self._profiles.setdefault(name, cProfile.Profile())
        return profile.runcall(work, seconds)

    def report(self) -> str:
        """Per subject and daemon the functions that took the most time of their own."""
        text = io.StringIO()
        for name, profile in self._profiles.items():
            text.write(f"=== {name}\n")
            _print(pstats.Stats(profile, stream=text))
        for path in sorted(self.folder.iterdir()):
            text.write(f"=== daemon: {path.name}\n")
            _print(pstats.Stats(str(path), stream=text))
        return text.getvalue()


def _print(stats: pstats.Stats) -> None:
    stats.strip_dirs().sort_stats("tottime").print_stats(LINES)
    stats.sort_stats("cumulative").print_stats(LINES)
