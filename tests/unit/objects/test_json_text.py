"""(text of somebody else's) -> value, or a ValueError."""

from __future__ import annotations

import pytest

from scheduler.objects import json_text
from scheduler.objects.base import MAX_DEPTH


@pytest.mark.parametrize(
    ("text", "value"),
    [("{}", {}), ('[1, "a"]', [1, "a"]), (b"null", None), ("1e999", float("inf"))],
)
def test_what_is_json(text: str | bytes, value: object) -> None:
    assert json_text.read(text) == value


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[" * MAX_DEPTH * 2 + "1" + "]" * MAX_DEPTH * 2]
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.read(text)
