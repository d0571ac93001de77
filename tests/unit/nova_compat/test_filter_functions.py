"""Nova's functions on aggregate metadata, by rows of the filters page, section 5.3."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import nova_compat
from tests.builders import a_host

METADATA = [{"zone": "a, b", "ssd": "1"}, {"zone": "b"}, {"zone": ""}, {"other": "x"}]


@pytest.mark.parametrize(
    ("key", "values"), [("zone", {"a, b", "b", ""}), ("ssd", {"1"}), ("none", set())]
)
def test_values_are_not_split(key: str, values: set[str]) -> None:
    host = a_host(aggregates=METADATA)
    assert nova_compat.aggregate_values_from_key(host, key) == values


@pytest.mark.parametrize(
    ("key", "metadata"),
    [
        (None, {"zone": {"a", "b", ""}, "ssd": {"1"}, "other": {"x"}}),
        ("zone", {"zone": {"a", "b", ""}, "ssd": {"1"}}),
        ("ssd", {"zone": {"a", "b"}, "ssd": {"1"}}),
        ("none", {}),
    ],
)
def test_metadata_is_split(key: str | None, metadata: dict[str, set[str]]) -> None:
    host = a_host(aggregates=METADATA)
    assert nova_compat.aggregate_metadata_get_by_host(host, key) == metadata


@pytest.mark.parametrize(
    ("values", "named", "number"),
    [
        (set(), {"default": 5}, 5),
        ({"10", "9"}, {}, 9),
        ({"10.5", "9.5"}, {"cast_to": float}, 9.5),
        ({"10", "9"}, {"based_on": max}, 10),
        ({"7"}, {"default": 5}, 7),
    ],
)
def test_one_number_of_several(values: set[str], named: dict[str, Any], number: float) -> None:
    assert nova_compat.validate_num_values(values, **named) == number


def test_one_bad_value_spoils_all() -> None:
    with pytest.raises(ValueError, match="x"):
        nova_compat.validate_num_values({"1", "x"}, default=5)


@pytest.mark.parametrize(("based_on", "word"), [(min, "minimum"), (max, "maximum")])
def test_a_choice_is_logged(caplog: pytest.LogCaptureFixture, based_on: Any, word: str) -> None:
    caplog.set_level("INFO")
    nova_compat.validate_num_values({"1", "2"}, based_on=based_on)
    nova_compat.validate_num_values({"1"}, based_on=based_on)
    assert caplog.messages == [f"2 values found, of which the {word} value will be used."]
