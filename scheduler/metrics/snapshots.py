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
from dataclasses import dataclass
from typing import Any, Final

from scheduler.metrics.samples import Samples

FRESH_SECONDS: Final = 10.0
"""A worker that has told nothing for longer is not counted as alive."""
_PREFIX, _SUFFIX, _RETIRED = "metrics-", ".json", "metrics-retired.json"


@dataclass(frozen=True)
class Snapshot:
    """Latest values of the worker *pid*, at *written_at* of a clock that never goes back."""

    pid: int
    written_at: float
    samples: Samples


class Snapshots:
    """The files in *folder*."""

    def __init__(self, folder: pathlib.Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock

    def write(self, samples: Samples) -> None:
        """Tell what this process has counted and measured."""
        pid = os.getpid()
        plain = {"pid": pid, "written_at": self._clock(), "samples": samples.to_plain()}
        self._replace(self._path(pid), plain)

    def is_alive(self, snapshot: Snapshot) -> bool:
        """True when its worker runs, and gets to tell of itself."""
        is_fresh = self._clock() - snapshot.written_at <= FRESH_SECONDS
        return is_fresh and _exists(snapshot.pid)

    def together(self) -> tuple[Samples, list[Snapshot]]:
        """All workers' values as one, and the snapshots of those that are alive."""
        with self._locked(fcntl.LOCK_SH):
            combined, snapshots = self._retired(), list(self._several())
        alive = [each for each in snapshots if self.is_alive(each)]
        for each in snapshots:
            combined.take(each.samples, is_alive=each in alive)
        return combined, alive

    def retire(self) -> None:
        """Put the files of dead workers together; called by each one that begins."""
        with self._locked(fcntl.LOCK_EX):
            # A process that begins has told nothing yet: what has its number is an earlier one's.
            dead = [e for e in self._several() if e.pid == os.getpid() or not _exists(e.pid)]
            if not dead:
                return
            combined = self._retired()
            for each in dead:
                combined.take(each.samples, is_alive=False)
            self._replace(self._folder / _RETIRED, combined.to_plain())
            for each in dead:
                self._path(each.pid).unlink()

    def _retired(self) -> Samples:
        plain = _read(self._folder / _RETIRED)
        return Samples() if plain is None else Samples.from_plain(plain)

    def _several(self) -> Iterator[Snapshot]:
        for path in sorted(self._folder.glob(f"{_PREFIX}*{_SUFFIX}")):
            plain = None if path.name == _RETIRED else _read(path)
            if plain is not None:
                samples = Samples.from_plain(plain["samples"])
                yield Snapshot(plain["pid"], plain["written_at"], samples)

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Keep files from being put together while they are read, by whichever worker."""
        with (self._folder / "metrics.lock").open("a") as lock:
            fcntl.flock(lock, how)
            yield

    def _path(self, pid: int) -> pathlib.Path:
        return self._folder / f"{_PREFIX}{pid}{_SUFFIX}"

    @staticmethod
    def _replace(path: pathlib.Path, plain: dict[str, Any]) -> None:
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(plain), encoding="utf-8")
        new.replace(path)


def _read(path: pathlib.Path) -> Any:
    """The content of a file; None if it is not there (any more)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
