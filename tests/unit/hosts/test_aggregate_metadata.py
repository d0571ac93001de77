"""Values of a metadata key over all aggregates of a host."""

from __future__ import annotations

import pytest

from scheduler import objects
from scheduler.hosts import aggregate_metadata


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
