"""Nova's functions for filters: the table of the filters page, section 5.3."""

import pytest

from scheduler.nova_compat import (
    aggregate_metadata_get_by_host,
    aggregate_values_from_key,
    validate_num_values,
)
from tests.builders import a_host

METADATA = [{"zone": "a, b", "ssd": "1"}, {"zone": "b"}, {"zone": ""}, {"other": "x"}]


@pytest.mark.parametrize(
    ("key", "values", "split"),
    [
        ("zone", {"a, b", "b", ""}, {"zone": {"a", "b", ""}, "ssd": {"1"}}),
        ("ssd", {"1"}, {"zone": {"a", "b"}, "ssd": {"1"}}),
        ("none", set(), {}),
        (None, set(), {"zone": {"a", "b", ""}, "ssd": {"1"}, "other": {"x"}}),
    ],
)
def test_values_and_split_values(key, values, split):
    host = a_host(aggregates=METADATA)
    assert aggregate_values_from_key(host, key) == values
    assert aggregate_metadata_get_by_host(host, key) == split


@pytest.mark.parametrize(
    ("values", "named", "number", "logged"),
    [
        (set(), {"default": 5}, 5, None),
        ({"10", "9"}, {}, 9, "minimum"),
        ({"10.5", "9.5"}, {"cast_to": float}, 9.5, "minimum"),
        ({"10", "9"}, {"based_on": max}, 10, "maximum"),
        ({"7"}, {"default": 5}, 7, None),
    ],
)
def test_one_number_of_several(caplog, values, named, number, logged):
    caplog.set_level("INFO")
    assert validate_num_values(values, **named) == number
    said = f"{len(values)} values found, of which the {logged} value will be used."
    assert caplog.messages == ([said] if logged else [])


def test_one_bad_value_spoils_all():
    with pytest.raises(ValueError, match="x"):
        validate_num_values({"1", "x"}, default=5)
