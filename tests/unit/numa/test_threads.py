"""Requests that need sibling threads, and hosts that have none (section 8.1)."""

from __future__ import annotations

import pytest

from scheduler import objects
from scheduler.numa import CURRENT, NEWTON, HostTopology, NumaSemantics, lacks_threads
from tests.unit.numa.builders import cell, host

NONE, ONES, PAIRS = (), [[0], [1], [2], [3]], [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("semantics", "siblings", "lacking"),
    [
        (CURRENT, NONE, True),
        (CURRENT, ONES, True),
        (CURRENT, PAIRS, False),
        (NEWTON, NONE, True),
        (NEWTON, ONES, False),
        (NEWTON, PAIRS, False),
    ],
)
@pytest.mark.parametrize(
    ("specs", "properties"),
    [
        ({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}, {}),
        ({"hw:cpu_policy": "shared"}, {"cpu_policy": "dedicated", "cpu_thread_policy": "require"}),
        ({"hw:cpu_thread_policy": "require"}, {"cpu_policy": "dedicated"}),
    ],
)
def test_require(
    semantics: NumaSemantics,
    siblings: list[list[int]],
    lacking: bool,
    specs: dict[str, str],
    properties: dict[str, str],
) -> None:
    place = host(cell(siblings=NONE), cell(1, siblings=siblings))
    image = objects.ImageMeta(
        properties=objects.ImageMetaProps(**{f"hw_{k}": v for k, v in properties.items()})
    )
    flavor = objects.Flavor(extra_specs=specs)
    assert lacks_threads(place, flavor, image, semantics) is lacking


@pytest.mark.parametrize(
    ("place", "specs"),
    [
        (None, {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}),
        (HostTopology(), {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}),
        (host(cell()), {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer"}),
        (host(cell()), {"hw:cpu_thread_policy": "require"}),
        (host(cell()), {}),
    ],
)
def test_not_asked(place: HostTopology | None, specs: dict[str, str]) -> None:
    flavor = objects.Flavor(extra_specs=specs)
    assert not lacks_threads(place, flavor, None, CURRENT)
