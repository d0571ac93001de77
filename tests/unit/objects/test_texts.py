"""(text) -> value or set of CPUs, or a ValueError."""

from __future__ import annotations

import pytest

from scheduler.objects import texts
from scheduler.objects.base import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "value"),
    [("{}", {}), ('[1, "a"]', [1, "a"]), (b"null", None), ("1e999", float("inf"))],
)
def test_what_is_json(text: str | bytes, value: object) -> None:
    assert texts.read_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[" * MAX_DEPTH * 2 + "1" + "]" * MAX_DEPTH * 2]
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError):
        texts.read_json(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        ("0-3,^2,5", {0, 1, 3, 5}),
        (" 1 , 2 ", {1, 2}),
        ("^1", set()),
        ("0-2,^0-1", {2}),
        ("^0-1,0-4", {2, 3, 4}),
        (" 1 - 3 ", {1, 2, 3}),
        *[(text, None) for text in ("1-3-5", "^", "^a", "3-1", "a", "1-", "-1", "0-999999999")],
    ],
)
def test_cpu_specs(text, cpus):
    if cpus is None:
        with pytest.raises(ValueError, match="CPU"):
            texts.parse_cpu_spec(text)
    else:
        assert texts.parse_cpu_spec(text) == cpus
