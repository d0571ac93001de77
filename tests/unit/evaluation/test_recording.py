"""The watcher notes the first instance only, once."""

import numpy as np
import pytest

from scheduler.evaluation.recording import Recording
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.weights.weighing import Weighed
from tests.builders import NOW, a_fleet


def hosts():
    table = a_fleet({}, {}, {})
    return Candidates(Scope(table, NOW, 60), table.order)


def weighed(*totals):
    candidates = hosts().take(np.arange(len(totals)))
    return Weighed(candidates, np.array(totals), np.arange(len(totals)), ())


def test_only_the_first_instance_is_noted():
    recording = Recording(host_subset_size=1)
    for index, few in ((0, 2), (0, 1), (1, 3)):
        left = hosts().take(np.arange(few))
        recording.passed(index, left, lambda _state: {})
        recording.weighed(index, weighed(*range(few, 0, -1)), np.ones(few, dtype=bool))
    assert recording.answer["passed"] == [["h1", "n1"], ["h2", "n2"]]
    assert recording.answer["weights"] == {"h1/n1": 2, "h2/n2": 1}
    assert recording.answer["filters"] == []


@pytest.mark.parametrize(
    ("totals", "claimable", "subset", "forced"),
    [
        ((2.0, 1.0), (True, True), 1, True),
        ((1.0, 1.0), (True, True), 1, False),
        ((1.0, 1.0), (False, True), 1, True),
        ((2.0, 1.0, 1.0), (False, True, True), 1, False),
        ((2.0, 1.0), (True, True), 2, False),
        ((2.0,), (True,), 2, True),
    ],
)
def test_whether_the_choice_is_forced(totals, claimable, subset, forced):
    recording = Recording(subset)
    recording.weighed(0, weighed(*totals), np.array(claimable))
    assert recording.forced is forced
