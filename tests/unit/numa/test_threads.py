"""Requests that need sibling threads, and hosts that have none (section 8.1)."""

import pytest

from scheduler import objects
from scheduler.numa import CURRENT, NEWTON, requires_threads
from tests.unit.numa.builders import cell, host

NONE, ONES, PAIRS = (), [[0], [1], [2], [3]], [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("semantics", "place", "lacking"),
    [
        (CURRENT, host(cell(siblings=NONE), cell(1, siblings=ONES)), True),
        (CURRENT, host(cell(siblings=NONE), cell(1, siblings=PAIRS)), False),
        (NEWTON, host(cell(siblings=NONE), cell(1, siblings=NONE)), True),
        (NEWTON, host(cell(siblings=NONE), cell(1, siblings=ONES)), False),
    ],
)
def test_lacking(semantics, place, lacking):
    assert semantics.has_siblings(place) is not lacking


@pytest.mark.parametrize(
    ("specs", "properties", "required"),
    [
        ({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}, {}, True),
        (
            {"hw:cpu_policy": "shared"},
            {"cpu_policy": "dedicated", "cpu_thread_policy": "require"},
            True,
        ),
        ({"hw:cpu_thread_policy": "require"}, {"cpu_policy": "dedicated"}, True),
        ({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer"}, {}, False),
        ({"hw:cpu_policy": "Dedicated", "hw:cpu_thread_policy": "require"}, {}, False),
        ({"hw:cpu_thread_policy": "require"}, {}, False),
    ],
)
def test_requiring(specs, properties, required):
    image = objects.ImageMeta(
        properties=objects.ImageMetaProps(**{f"hw_{k}": v for k, v in properties.items()})
    )
    assert requires_threads(objects.Flavor(extra_specs=specs), image) is required
    assert not requires_threads(None, None)
