"""The simulation itself: the same seed is the same run, and what is broken is found and shown."""

import os
import subprocess
import sys

import pytest

from tests.simulation import plants
from tests.simulation.plans import Plan
from tests.simulation.runs import explore, failure, shrunk, timeline
from tests.simulation.world import simulating

FAULT = "answered before it is written"


def run(*words, hash_seed="0"):
    command = [sys.executable, "-m", "tests.simulation", *words]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env=environment
    )


def test_a_seed_is_one_run_bit_for_bit():
    first, second = run("--replay", "7"), run("--replay", "7", hash_seed="3")
    assert first.stdout.splitlines()[-1].startswith("nothing fails; digest ")
    assert first.stdout == second.stdout


def test_without_faults_nothing_fails():
    with simulating():
        found = explore(iter(range(1, 9)), sys.maxsize, 100.0)
    assert found.failed == []
    assert found.counts["hosts"] > 50
    assert found.counts["kill"] > 0


@pytest.mark.parametrize("name", plants.AS_IT_WAS)
def test_what_broke_the_protocol_as_it_was_is_found_from_its_seed_on(name):
    (first, what), kind = plants.AS_IT_WAS[name], plants.IN_PLANS[name]
    plans = (Plan.from_seed(seed, **kind) for seed in range(first, first + 500))
    with simulating(), plants.planted(name):
        plan = next(each for each in plans if failure(each)[0] == what)
    with simulating():
        assert failure(plan)[0] == ""


@pytest.mark.slow
def test_a_failure_shrinks_to_a_short_timeline():
    with simulating(), plants.planted(FAULT):
        [(seed, _text)] = explore(iter(range(1, 1000)), sys.maxsize, 300.0).failed
        plan = shrunk(Plan.from_seed(seed), 300.0)
        lines = timeline(plan)
        assert failure(plan)[0] == "unclaimed"
    assert len(lines) < 15, "\n".join(lines)
    assert lines[-1].startswith("unclaimed: ")


def test_the_command_fails_with_a_seed_to_repeat():
    found = run("--replay", "3", "--planted", "never closed")
    assert found.returncode == 1
    assert "left over: open claims" in found.stdout.splitlines()[-1]
