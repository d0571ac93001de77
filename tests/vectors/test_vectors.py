"""Nova's recorded decisions, taken again: some of every suite, with the command's own code.

Which ones is drawn.  ``make nightly`` takes all, as ``VECTORS_EVERY=1 pytest tests/vectors``.
"""

import itertools
import os
import pathlib
import random

import pytest

from scheduler.evaluation import outcome as listed
from scheduler.evaluation.cases import read_cases

FOLDER = pathlib.Path(__file__).parents[1] / "data" / "vectors"
SUITES = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.gz"))
EVERY = int(os.environ.get("VECTORS_EVERY", "18"))


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_is_decided_as_recorded(suite):
    source = read_cases([str(FOLDER / f"{suite}.jsonl.gz")])
    cases = itertools.islice(source, random.randrange(EVERY), None, EVERY)
    outcomes = [listed.outcome_of(each) for each in cases]
    different = {each.name: each.differences for each in outcomes if each.differences}
    on_purpose = {each.name for each in outcomes} & listed.REASONS.keys()

    assert len(outcomes) >= 30 // EVERY
    assert {name: lines for name, lines in different.items() if name not in on_purpose} == {}
    assert on_purpose <= different.keys()


def test_few_cases_are_decided_otherwise_on_purpose():
    assert len(SUITES) >= 69
    assert len(listed.REASONS) <= 100
