"""Messages -> what nests too deeply, if anything does."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import errors
from scheduler.rpc.limits import MessageLimits

LIMITS = MessageLimits(most_bytes=1000, most_levels=6)


class Message(dict[str, Any]):
    """The library's messages are no plain dicts."""


def deep(levels: int) -> Any:
    """Lists and dicts in each other."""
    found: Any = 1
    for level in range(levels):
        found = {"in": found, "x": 1} if level % 2 else [0, found]
    return found


@pytest.mark.parametrize(
    ("message", "named"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"args": {"a": 1, "b": deep(4)}}, None, id="as deep as may be"),
        pytest.param({"args": {"a": deep(4), "b": deep(5)}}, "b", id="an argument"),
        pytest.param({"args": {"a": deep(900)}}, "a", id="far too deep"),
        pytest.param({"args": deep(5)}, None, id="no dict, as deep as may be"),
        pytest.param({"args": [deep(5)]}, "args", id="no dict"),
        pytest.param({"args": {}, "more": deep(6)}, "more", id="beside the arguments"),
        pytest.param({"args": {"": deep(9)}}, "''", id="no name"),
        pytest.param({"_context_roles": deep(5)}, None, id="a context as deep as may be"),
        pytest.param({"_context_roles": deep(6)}, "roles", id="the context"),
        pytest.param({"args": {"x" * 999: deep(9)}}, "x" * 200, id="a long name"),
    ],
)
def test_what_nests_too_deeply_is_named(message: Any, named: str | None) -> None:
    message = Message(message)
    if named is None:
        LIMITS.check_depth(message)
        return
    with pytest.raises(errors.InvalidRequest, match=r"6 levels .*max_request_depth") as caught:
        LIMITS.check_depth(message)
    assert caught.value.kwargs["field"] == named
