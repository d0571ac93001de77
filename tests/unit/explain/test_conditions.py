"""What explain says of a condition is what the filter says, in numbers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from scheduler import errors
from scheduler.engine.evaluation import rejections
from scheduler.explain.conditions import DESCRIPTIONS, MEASURES, describe
from scheduler.filters.registry import all_filters
from scheduler.hosts.table import HostTable
from tests.builders import a_conf, a_fleet, a_request, candidates
from tests.world.random_fleets import fleets, requests

REASONS = {reason.code for each in all_filters() for reason in getattr(each, "reasons", ())}

#: All but the one that asks a server.
FILTERS = [
    kind(a_conf())
    for kind in all_filters()
    if hasattr(kind, "conditions") and kind.__name__ != "TrustedFilter"
]

HOSTS = [
    {},
    {"free_ram_mb": 100, "free_disk_mb": 100, "vcpus_used": 64},
    {"total_usable_ram_mb": 256, "total_usable_disk_gb": 0, "vcpus_total": 1},
    {"free_ram_mb": -4000, "ram_allocation_ratio": 16.0, "num_io_ops": 8, "num_instances": 50},
    {"num_io_ops": 9, "num_instances": 51, "aggregates": [{"max_io_ops_per_host": "20"}]},
    {"aggregates": [{"ram_allocation_ratio": "0.1", "max_instances_per_host": "0"}]},
    {"aggregates": [{"cpu_allocation_ratio": "0.2", "disk_allocation_ratio": "0.001"}]},
    {"free_ram_mb": 512, "free_disk_mb": 1024, "vcpus_used": 2},
]


def test_every_reason_can_be_put_into_numbers_or_words() -> None:
    assert REASONS - MEASURES.keys() - DESCRIPTIONS.keys() == set()
    assert (MEASURES.keys() | DESCRIPTIONS.keys()) - REASONS == set()


@pytest.mark.parametrize("vcpus", [1, 2, 8])
@pytest.mark.parametrize(
    "kind", [each for each in all_filters() if {r.code for r in each.reasons} & MEASURES.keys()]
)
def test_those_removed_miss_something_and_those_that_pass_nothing(kind: type, vcpus: int) -> None:
    each = kind(a_conf())
    request = a_request(flavor={"memory_mb": 512, "root_gb": 1, "vcpus": vcpus})
    hosts = candidates(a_fleet(*HOSTS))
    passing = hosts.everything(True)
    for reason, mask in rejections(each, hosts, request):
        passing &= ~mask
        if reason.code in MEASURES:
            measured = MEASURES[reason.code](each, hosts.take(mask), request)
            assert (measured.missing > 0).all(), (reason.code, measured)
            assert measured.wanted
            assert measured.found_text(0)
    for reason in each.reasons:
        if reason.code in MEASURES and passing.any():
            measured = MEASURES[reason.code](each, hosts.take(passing), request)
            assert (measured.missing <= 0).all(), (reason.code, measured)


@settings(max_examples=150, deadline=None)
@given(table=fleets(), request=requests())
def test_whatever_a_host_says_there_are_words_for_it(table: HostTable, request: Any) -> None:
    hosts = candidates(table)
    for each in FILTERS:
        try:
            removed = [(reason, mask) for reason, mask in rejections(each, hosts, request)]
        except errors.NovaException:
            continue
        for reason, mask in removed:
            for state in hosts.take(mask).states():
                wanted, found = describe(each, reason.code, state, request)
                assert wanted
                assert found
