"""The listings of the page "Write a filter"; functional/test_examples.py runs its commands."""

import importlib
import re

import pytest

from scheduler.engine.evaluation import FilterChain
from tests.builders import a_fleet, a_request, candidates
from tests.builders import names as names_of
from tests.pages import WRITE_A_FILTER as PAGE


def test_classes_of_the_page_are_importable():
    """Those that begin with the project's own package."""
    named = set(re.findall(r"`(scheduler(?:\.\w+)*\.[A-Z]\w+)`", PAGE.read_text()))
    assert named >= {"scheduler.drivers.Scheduler", "scheduler.weights.BaseHostWeigher"}
    for module, _dot, name in (path.rpartition(".") for path in named):
        assert isinstance(getattr(importlib.import_module(module), name), type)


@pytest.mark.parametrize(("number", "left"), [(0, ["h2"]), (1, ["h1"])])
def test_listings_of_the_page_are_filters(number, left):
    listing = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]
    names = {"__name__": "listing"}
    exec(listing, names)
    [cls] = [each for each in names.values() if getattr(each, "__module__", "") == "listing"]

    table = a_fleet({"node": "node-1", "num_io_ops": 2}, {"node": "node-2", "num_io_ops": 3})
    found = FilterChain([cls()]).run(candidates(table), a_request())
    assert names_of(found.hosts) == left
