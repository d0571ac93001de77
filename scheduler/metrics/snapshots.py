"""One file per worker with its latest values, in the folder that the workers of a daemon share.

What a worker had counted stays in its file when it dies; the next one that is started adds the
files of the dead up into one, so that their number does not grow.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from scheduler.metrics.samples import Samples

FRESH_SECONDS: Final = 10.0
"""A worker that has told nothing for longer is not counted as alive."""


class Snapshots:
    """The files in *folder*; *clock* never goes back."""

    def __init__(self, folder: pathlib.Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock

    def write(self, samples: Samples) -> None:
        """Tell what this process has counted and measured."""
        plain = {**samples.to_plain(), "written_at": self._clock()}
        self._replace(f"metrics-{os.getpid()}", plain)

    def together(self) -> tuple[Samples, list[int]]:
        """All workers' values as one, and the process ids of those that are alive."""
        alive = []
        with self._locked(fcntl.LOCK_SH):
            combined = self._of_the_dead()
            for pid, path in self._files().items():
                plain = json.loads(path.read_bytes())
                is_fresh = self._clock() - plain["written_at"] <= FRESH_SECONDS
                is_alive = is_fresh and _exists(pid)
                combined.take(Samples.from_plain(plain), is_alive=is_alive)
                if is_alive:
                    alive.append(pid)
        return combined, alive

    def retire(self) -> None:
        """Put the files of dead workers together; called by each one that begins."""
        with self._locked(fcntl.LOCK_EX):
            # A process that begins has told nothing yet: what has its number is an earlier one's.
            files = self._files().items()
            dead = [path for pid, path in files if pid == os.getpid() or not _exists(pid)]
            combined = self._of_the_dead()
            for path in dead:
                plain = json.loads(path.read_bytes())
                combined.take(Samples.from_plain(plain), is_alive=False)
            self._replace("retired", combined.to_plain())
            for path in dead:
                path.unlink()

    def _files(self) -> dict[int, pathlib.Path]:
        """By process id the file of each worker that was not retired."""
        paths = sorted(self._folder.glob("metrics-*.json"))
        return {int(path.stem.partition("-")[2]): path for path in paths}

    def _of_the_dead(self) -> Samples:
        retired = self._folder / "retired.json"
        exists = retired.exists()
        return Samples.from_plain(json.loads(retired.read_bytes())) if exists else Samples()

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Keep files from being put together while they are read, by whichever worker."""
        with (self._folder / "metrics.lock").open("a") as lock:
            fcntl.flock(lock, how)
            yield

    def _replace(self, name: str, plain: dict[str, Any]) -> None:
        new = self._folder / f"{name}.{os.getpid()}.new"
        new.write_text(json.dumps(plain), encoding="utf-8")
        new.replace(self._folder / f"{name}.json")


def _exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")
