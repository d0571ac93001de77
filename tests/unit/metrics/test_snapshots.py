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


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def snapshots(tmp_path: pathlib.Path, clock: Clock) -> Snapshots:
    return Snapshots(tmp_path, clock)


def counted(number: float) -> Samples:
    samples = Samples()
    samples.set(catalogue.PLACED, number)
    samples.set(catalogue.IN_FLIGHT, number)
    return samples


def of_another(folder: pathlib.Path, pid: int, number: float) -> None:
    """The file that a process *pid* has left."""
    plain = {"written_at": 1000.0, **counted(number).to_plain()}
    (folder / f"metrics-{pid}.json").write_text(json.dumps(plain), encoding="utf-8")


def summed(snapshots: Snapshots) -> tuple[float, float, list[int]]:
    """Placed, in flight, and who is alive."""
    samples, alive = snapshots.together()
    both = catalogue.PLACED, catalogue.IN_FLIGHT
    placed, in_flight = (samples.values.get((each.name, ()), 0) for each in both)
    return placed, in_flight, alive


def test_alone(snapshots: Snapshots) -> None:
    assert summed(snapshots) == (0, 0, [])
    for number in (1, 2):
        snapshots.write(counted(number))
    assert summed(snapshots) == (2, 2, [os.getpid()])


def test_another_one_that_lives(snapshots: Snapshots, tmp_path: pathlib.Path) -> None:
    snapshots.write(counted(1))
    with subprocess.Popen(["sleep", "60"]) as other:
        of_another(tmp_path, other.pid, 10)
        assert summed(snapshots) == (11, 11, sorted([os.getpid(), other.pid], key=str))
        other.kill()


def test_one_that_says_nothing_any_more(snapshots: Snapshots, clock: Clock) -> None:
    snapshots.write(counted(1))
    clock.now += FRESH_SECONDS + 1
    assert summed(snapshots) == (1, 0, [])


def test_the_dead_are_put_together(snapshots: Snapshots, tmp_path: pathlib.Path) -> None:
    for round_of_deaths in (1, 2):
        for pid in (NOBODY, NOBODY + 1):
            of_another(tmp_path, pid, 10)
        assert summed(snapshots)[0] == 20 * round_of_deaths
        snapshots.retire()
        assert not list(tmp_path.glob(f"metrics-{NOBODY}*"))
        assert summed(snapshots) == (20 * round_of_deaths, 0, [])
    snapshots.write(counted(1))
    assert summed(snapshots) == (41, 1, [os.getpid()])


def test_a_worker_with_the_number_of_a_dead_one(
    snapshots: Snapshots, tmp_path: pathlib.Path
) -> None:
    of_another(tmp_path, os.getpid(), 10)
    snapshots.retire()
    snapshots.write(counted(1))
    assert summed(snapshots) == (11, 1, [os.getpid()])
