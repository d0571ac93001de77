"""(body, compression) -> what the library gets to read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import amqp
import pytest

from scheduler import errors
from scheduler.rpc import door
from scheduler.rpc.limits import MessageLimits

MOST = 1000
LIMITS = MessageLimits(most_bytes=MOST, most_levels=4)
CALL = {
    "method": "ping",
    "args": {"arg": "x" * MOST},
    "_msg_id": "7",
    "_reply_q": "reply_8",
    "_unique_id": "9",
    "_context_request_id": "req-1",
}


def enveloped(message: dict[str, Any]) -> bytes:
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)}).encode()


def received(body: bytes | str, headers: dict[str, Any] | None = None) -> Any:
    """The message that the library's own callback gets."""
    got: list[Any] = []
    consumer = SimpleNamespace(_callback=got.append, callback=None)
    door.guard(consumer, LIMITS)
    consumer._callback(
        amqp.Message(body, content_type="text/plain", application_headers=dict(headers or {}))
    )
    (message,) = got
    return message


def read(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.loads(message.body)["oslo.message"])
    return found


def test_what_is_not_too_large_is_left_as_it_is() -> None:
    message = received(b"x" * MOST, {"other": 1})
    assert message.body == b"x" * MOST
    assert message.properties["application_headers"] == {"other": 1}
    assert message.properties["content_type"] == "text/plain"


@pytest.mark.parametrize("as_text", [False, True])
def test_of_what_is_too_large_remains_whom_to_answer(as_text: bool) -> None:
    body = enveloped(CALL)
    message = received(body.decode() if as_text else body)
    assert read(message) == {
        **{name: value for name, value in CALL.items() if name != "args"},
        door.SIZE_KEY: len(body),
    }
    assert message.properties["content_type"] == "application/json"


@pytest.mark.parametrize("body", [b"\x00" * 2 * MOST, json.dumps(["_msg_id"] * MOST).encode()])
def test_who_cannot_be_found_is_not_answered(body: bytes) -> None:
    assert read(received(body)) == {door.SIZE_KEY: len(body)}


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("application/x-gzip", zlib.compress),
        ("application/x-bz2", bz2.compress),
        ("application/x-lzma", lzma.compress),
    ],
)
def test_what_is_compressed_is_inflated_as_far_as_it_may_be(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    small = received(compress(b"x" * MOST), {"compression": name})
    assert small.body == b"x" * MOST
    assert small.properties["application_headers"] == {}
    large = received(compress(b"x" * 1000 * MOST), {"compression": name})
    assert read(large) == {door.SIZE_KEY: MOST + 1}


@pytest.mark.parametrize("name", ["application/x-gzip", "zstd", "gzip", ["x"], None])
def test_what_cannot_be_inflated_cannot_be_read(name: Any) -> None:
    assert received(gzip.compress(b"x"), {"compression": name}).body == b""


@pytest.mark.parametrize(
    ("changes", "stands_for"),
    [
        ({}, None),
        ({"args": {"arg": [[]]}}, None),
        ({"args": {"arg": [[[]]]}}, "arg"),
        ({"_context_roles": [[[[]]]]}, "roles"),
        ({"_unique_id": [[[[]]]]}, "_unique_id"),
    ],
)
def test_of_what_is_too_deep_remains_whom_to_answer(
    changes: dict[str, Any], stands_for: str | None
) -> None:
    passed: list[Any] = []
    consumer = SimpleNamespace(_callback=None, callback=passed.append)
    door.guard(consumer, LIMITS)
    message = {**CALL, **changes}
    consumer.callback(dict(message))
    if stands_for is None:
        assert passed == [message]
        return
    kept = {k: v for k, v in CALL.items() if k not in ("args", *changes)}
    assert passed == [{**kept, door.DEPTH_KEY: stands_for}]
    with pytest.raises(errors.InvalidRequest, match=stands_for):
        door.refuse(passed[0], LIMITS)
