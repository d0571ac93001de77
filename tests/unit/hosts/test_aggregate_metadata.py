"""Values of a metadata key over all aggregates of a host."""

import logging

import pytest

from scheduler import objects
from scheduler.hosts import aggregate_metadata
from tests.builders import a_fleet, candidates

SEVERAL = "2 values found, of which the minimum value will be used."


@pytest.mark.parametrize(
    ("metadata", "values"),
    [
        pytest.param([], set(), id="no aggregate"),
        pytest.param([{}], set(), id="no metadata"),
        pytest.param([{"Zone": "z1"}], set(), id="keys have a case"),
        pytest.param([{"zone": "z1"}], {"z1"}, id="one value"),
        pytest.param([{"zone": "z1, Z2 ,z3"}], {"z1", "Z2", "z3"}, id="split and stripped"),
        pytest.param([{"zone": "z1"}, {"zone": "z1,z2"}, {"x": "y"}], {"z1", "z2"}, id="united"),
        pytest.param([{"zone": ""}], {""}, id="an empty value is a value"),
        pytest.param([{"zone": "a,"}], {"a", ""}, id="a comma at the end leaves an empty one"),
    ],
)
def test_values_are_split_and_united(metadata, values):
    aggregates = [objects.Aggregate(metadata=each) for each in metadata]

    assert aggregate_metadata.split_values(aggregates, "zone") == values


@pytest.mark.parametrize(
    ("metadata", "number", "messages"),
    [
        pytest.param([], None, [], id="no aggregate"),
        pytest.param([{"n": "3"}], 3.0, [], id="one"),
        pytest.param([{"n": "3"}, {"n": "3"}], 3.0, [], id="the same twice"),
        pytest.param([{"n": "10.0"}, {"n": "9"}], 9.0, [SEVERAL], id="the smallest as a number"),
        pytest.param([{"n": "1"}, {"n": "1.0"}], 1.0, [SEVERAL], id="texts are counted"),
        pytest.param([{"n": "x"}], None, ["Could not decode n: 'could not"], id="no number"),
        pytest.param([{"n": "1,2"}], None, ["Could not decode n: 'could not"], id="no list"),
        pytest.param([{"n": "1"}, {"n": "x"}], None, [SEVERAL, "Could not decode"], id="spoilt"),
    ],
)
def test_the_smallest_value(metadata, number, messages, caplog):
    aggregates = [objects.Aggregate(metadata=each) for each in metadata]

    with caplog.at_level(logging.INFO):
        assert aggregate_metadata.smallest(aggregates, "n", float) == number
    assert len(caplog.messages) == len(messages)
    assert all(map(str.startswith, caplog.messages, messages))


def test_overrides_per_host():
    table = a_fleet({"aggregates": [{"n": "2"}]}, {}, {"aggregates": [{"n": "x"}]})
    hosts = candidates(table)

    found = hosts.overridden("n", float, hosts.cpu_allocation_ratio)

    assert found.tolist() == [2.0, 16.0, 16.0]
    assert hosts.overridden("n", int, 7).tolist() == [2.0, 7.0, 7.0]


def test_keys_come_sorted_and_once():
    aggregates = [objects.Aggregate(metadata=each) for each in ({"b": "1"}, {"a": "1", "b": "2"})]

    assert aggregate_metadata.keys(aggregates) == ["a", "b"]
    assert aggregate_metadata.values(aggregates, "b") == {"1", "2"}
