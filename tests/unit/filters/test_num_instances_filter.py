"""(servers on the host, option) -> may take one more or not."""

from __future__ import annotations

import logging

import pytest

from scheduler.filters.num_instances_filter import AggregateNumInstancesFilter, NumInstancesFilter
from tests.builders import a_conf, a_host, a_request, verdict

FULL = ["num_instances.full"]


@pytest.mark.parametrize(
    ("num_instances", "options", "reasons"),
    [
        pytest.param(49, {}, [], id="one below the default"),
        pytest.param(50, {}, FULL, id="at the default"),
        pytest.param(0, {"max_instances_per_host": 1}, [], id="one allowed"),
        pytest.param(1, {"max_instances_per_host": 1}, FULL, id="one allowed and there"),
        pytest.param(0, {"max_instances_per_host": 0}, FULL, id="none allowed"),
    ],
)
def test_the_maximum_closes_the_host(num_instances, options, reasons):
    servers = NumInstancesFilter(a_conf(**options))

    assert verdict(servers, a_host(num_instances=num_instances), a_request()) == reasons


@pytest.mark.parametrize(
    ("metadata", "number", "passes"),
    [
        pytest.param([], 49, True, id="the option"),
        pytest.param([], 50, False, id="at the option"),
        pytest.param(["5"], 5, False, id="an aggregate's"),
        pytest.param(["100"], 99, True, id="more than the option"),
        pytest.param(["10", "9"], 9, False, id="the smallest as a number"),
        pytest.param([" 5 "], 4, True, id="blanks"),
        pytest.param(["0"], 0, False, id="zero closes the host"),
        pytest.param(["-1"], 0, False, id="so does less"),
    ],
)
def test_aggregates_set_the_maximum(metadata, number, passes):
    host = a_host(
        num_instances=number, aggregates=[{"max_instances_per_host": text} for text in metadata]
    )

    found = verdict(AggregateNumInstancesFilter(a_conf()), host, a_request())

    assert found == ([] if passes else ["aggregate_num_instances.full"])


@pytest.mark.parametrize("text", ["5.0", "5,6", "", "x", "1" * 400])
def test_one_bad_value_spoils_all_and_is_told(text, caplog):
    metadata = [{"max_instances_per_host": "1"}, {"max_instances_per_host": text}]
    host = a_host(num_instances=2, aggregates=metadata)

    with caplog.at_level(logging.WARNING):
        found = verdict(AggregateNumInstancesFilter(a_conf()), host, a_request())

    # Only the number too large for anything is one: the other value is smaller.
    assert found == (["aggregate_num_instances.full"] if text.isdecimal() else [])
    assert ("Could not decode max_instances_per_host" in caplog.text) is not text.isdecimal()
