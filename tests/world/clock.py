"""The clock of one process, which may jump while it runs."""

from collections.abc import Mapping
from pathlib import Path

from tests.servers import programs


class Clock:
    """What a program started with :attr:`environment` takes for the time of day.

    libfaketime reads from the file at *path*, whenever it is asked, how far that is off.  The clock
    that never goes back is the machine's own, as it is when an administrator sets the time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.jump(0)

    @property
    def environment(self) -> Mapping[str, str]:
        """What to start a program with."""
        return {
            "LD_PRELOAD": str(programs.find(programs.FAKETIME)),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: float) -> None:
        """Be so far from the right time, from now on."""
        there = self._path.with_suffix(".new")
        there.write_text(f"{seconds:+.0f}", encoding="utf-8")
        there.replace(self._path)
