"""Values of a metadata key over all aggregates of a host."""

import logging

import pytest

from scheduler import objects
from scheduler.hosts import aggregate_metadata

SEVERAL = "2 values found, of which the minimum value will be used."


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
