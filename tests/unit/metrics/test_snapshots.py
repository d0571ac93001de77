"""Files of several workers, some of them dead."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

from scheduler.metrics import catalogue
from scheduler.metrics.samples import Samples
from scheduler.metrics.snapshots import FRESH_SECONDS, Snapshots

NOBODY = 2**22 + 1
"""No process has this number on Linux."""


class Folder:
    """The files of several workers, as this process sees them at *now*."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.now = 1000.0
        self.snapshots = Snapshots(path, lambda: self.now)

    def write(self, number: float, pid: int | None = None) -> None:
        """Have this process tell, or leave what a process *pid* has told."""
        samples = Samples()
        samples.set(catalogue.PLACED, number)
        samples.set(catalogue.IN_FLIGHT, number)
        if pid is None:
            self.snapshots.write(samples)
            return
        plain = {"written_at": 1000.0, **samples.to_plain()}
        (self.path / f"metrics-{pid}.json").write_text(json.dumps(plain), encoding="utf-8")

    def summed(self) -> tuple[float, float, list[int]]:
        """Placed, in flight, and who is alive."""
        samples, alive = self.snapshots.together()
        both = catalogue.PLACED, catalogue.IN_FLIGHT
        placed, in_flight = (samples.values.get((each.name, ()), 0) for each in both)
        return placed, in_flight, sorted(alive)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path)


def test_those_that_live(folder: Folder) -> None:
    assert folder.summed() == (0, 0, [])
    for number in (1, 2):
        folder.write(number)
    assert folder.summed() == (2, 2, [os.getpid()])
    with subprocess.Popen(["sleep", "60"]) as other:
        folder.write(10, other.pid)
        assert folder.summed() == (12, 12, sorted([os.getpid(), other.pid]))
        other.kill()
    folder.now += FRESH_SECONDS + 1
    assert folder.summed() == (12, 0, []), "those that say nothing any more count as dead"


def test_the_dead_are_put_together(folder: Folder) -> None:
    # A worker may get the number of a dead one.
    for round_of_deaths in (1, 2):
        for pid in (NOBODY, NOBODY + 1, os.getpid()):
            folder.write(10, pid)
        assert folder.summed()[0] == 30 * round_of_deaths
        folder.snapshots.retire()
        assert not list(folder.path.glob("metrics-*.json"))
        assert folder.summed() == (30 * round_of_deaths, 0, [])
    folder.write(1)
    assert folder.summed() == (61, 1, [os.getpid()])
