"""Attempts as Havana's scheduler counted them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import errors
from scheduler.builds.choosing import count_attempt, record_choice

TRIED = [["h1", "n1"]]


@pytest.mark.parametrize(
    ("properties", "most", "retry"),
    [
        pytest.param({}, 3, {"num_attempts": 1, "hosts": []}, id="the first"),
        pytest.param(
            {"retry": {"num_attempts": 1, "hosts": TRIED}},
            3,
            {"num_attempts": 2, "hosts": TRIED},
            id="the second",
        ),
        pytest.param({"retry": {"num_attempts": 1}}, 1, None, id="only one is configured"),
        pytest.param({"force_hosts": ["a", "b"]}, 3, None, id="forced hosts"),
        pytest.param({"force_nodes": ["a"], "retry": {}}, 3, None, id="a forced node"),
        pytest.param({"force_hosts": []}, 3, {"num_attempts": 1, "hosts": []}, id="none forced"),
    ],
)
def test_counting(properties: dict[str, Any], most: int, retry: dict[str, Any] | None) -> None:
    count_attempt(properties, "uuid", most)
    assert properties.get("retry") == retry


def test_one_too_many() -> None:
    properties = {"retry": {"num_attempts": 3, "hosts": TRIED}}
    with pytest.raises(errors.NoValidHost, match="attempts 3 for instance u"):
        count_attempt(properties, "u", 3)


@pytest.mark.parametrize(
    ("retry", "field"),
    [
        pytest.param("once", "retry", id="a text"),
        pytest.param({"hosts": "h1"}, "retry", id="hosts in a text"),
        pytest.param({"num_attempts": "x"}, "retry.num_attempts", id="no number"),
        pytest.param({"num_attempts": [1]}, "retry.num_attempts", id="a list"),
    ],
)
def test_what_cannot_be_counted_on_is_refused(retry: Any, field: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        count_attempt({"retry": retry}, "uuid", 3)
    assert refused.value.kwargs["field"] == f"filter_properties.{field}"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        pytest.param(
            {"retry": {"num_attempts": 1}},
            {"retry": {"num_attempts": 1, "hosts": [["h", "n"]]}, "limits": {"vcpu": 4.0}},
            id="noted",
        ),
        pytest.param(
            {"retry": {"num_attempts": 1, "hosts": None}},
            {"retry": {"num_attempts": 1, "hosts": [["h", "n"]]}, "limits": {"vcpu": 4.0}},
            id="null for hosts",
        ),
        pytest.param({}, {"limits": {"vcpu": 4.0}}, id="no retry"),
        pytest.param({"force_hosts": ["h"]}, {"force_hosts": ["h"]}, id="forced"),
    ],
)
def test_noting(properties: dict[str, Any], expected: dict[str, Any]) -> None:
    record_choice(properties, {"host": "h", "nodename": "n", "limits": {"vcpu": 4.0}})
    assert properties == expected
