"""Messages beyond a limit -> what the library gets to read instead, and what is told of them."""

import bz2
import gzip
import json
import lzma
import zlib

import amqp
import pytest

from scheduler.rpc import messages
from scheduler.rpc.messages import REFUSED, MessageLimits

MOST = 1000
LIMITS = MessageLimits(most_bytes=MOST, most_levels=6)
CALL = {
    "method": "ping",
    "args": {"arg": "x" * MOST},
    "_msg_id": "7",
    "_reply_q": "reply_8",
    "_unique_id": "9",
    "_context_request_id": "req-1",
}


def too_large(size):
    return {REFUSED: ["message", f"{size} bytes; [scheduler] max_message_bytes allows {MOST}"]}


def bounded(body, headers=None):
    """The message that the library gets."""
    raw = amqp.Message(body, content_type="text/plain", application_headers=dict(headers or {}))
    LIMITS.bound_size(raw)
    LIMITS.bound_form(raw)
    return raw


def test_what_is_within_the_limits_is_left_as_it_is():
    message = bounded(b"x" * MOST, {"other": 1})
    assert message.body == b"x" * MOST
    assert message.properties["application_headers"] == {"other": 1}
    assert message.properties["content_type"] == "text/plain"


@pytest.mark.parametrize("as_text", [False, True])
def test_of_what_is_too_large_remains_whom_to_answer(as_text):
    body = messages.pack(CALL)
    message = bounded(body.decode() if as_text else body)
    assert messages.unpack(message.body) == {
        **{name: value for name, value in CALL.items() if name != "args"},
        **too_large(len(body)),
    }
    assert message.properties["content_type"] == "application/json"


@pytest.mark.parametrize("name", ["_reply_q", "_msg_id"])
@pytest.mark.parametrize("value", ["x" * 256, "\ud800", ["x"], {"x": 1}, 7, True])
def test_who_has_no_name_that_amqp_takes_is_not_answered(name, value):
    message = messages.unpack(bounded(messages.pack({**CALL, "args": {}, name: value})).body)
    assert message is not None
    assert message[REFUSED][0] == name
    assert name not in message


@pytest.mark.parametrize("body", [b"\x00" * 2 * MOST, json.dumps(["_msg_id"] * MOST).encode()])
def test_who_cannot_be_found_is_not_answered(body):
    assert messages.unpack(bounded(body).body) == too_large(len(body))


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("application/x-gzip", zlib.compress),
        ("application/x-bz2", bz2.compress),
        ("application/x-lzma", lzma.compress),
    ],
)
def test_what_is_compressed_is_inflated_as_far_as_it_may_be(name, compress):
    small = bounded(compress(b"x" * MOST), {"compression": name})
    assert small.body == b"x" * MOST
    assert small.properties["application_headers"] == {}
    large = bounded(compress(b"x" * 1000 * MOST), {"compression": name})
    assert messages.unpack(large.body) == too_large(MOST + 1)


@pytest.mark.parametrize("name", ["application/x-gzip", "zstd", "gzip", ["x"], None])
def test_what_cannot_be_inflated_cannot_be_read(name):
    assert bounded(gzip.compress(b"x"), {"compression": name}).body == b""


def deep(levels):
    found = 1
    for level in range(levels):
        found = {"in": found, "x": 1} if level % 2 else [0, found]
    return found


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"args": {}}, None, id="nothing"),
        pytest.param({"args": {"a": 1, "b": deep(4)}}, None, id="as deep as may be"),
        pytest.param({"args": {"a": deep(4), "b": deep(5)}}, "b", id="an argument"),
        pytest.param({"args": {"a": deep(60)}}, "a", id="far too deep"),
        pytest.param({"args": deep(5)}, None, id="no dict, as deep as may be"),
        pytest.param({"args": [deep(5)]}, "args", id="no dict"),
        pytest.param({"args": {}, "more": deep(6)}, "more", id="beside the arguments"),
        pytest.param({"args": {"": deep(9)}}, "''", id="no name"),
        pytest.param({"args": {}, "_context_roles": deep(5)}, None, id="a context"),
        pytest.param({"args": {}, "_context_roles": deep(6)}, "roles", id="a deep context"),
        pytest.param({"args": {"x" * 400: deep(9)}}, "x" * 200, id="a long name"),
        pytest.param({"args": {}, "_unique_id": deep(9)}, "_unique_id", id="what is kept"),
    ],
)
def test_of_what_is_too_deep_remains_whom_to_answer(changes, named):
    message = {**CALL, **changes}
    for body in (messages.pack(message), json.dumps(message).encode()):  # very old senders'
        found = messages.unpack(bounded(body).body)
        if named is None:
            assert found == message
            continue
        kept = {k: v for k, v in CALL.items() if k not in ("args", *changes)}
        reason = "nested more than 6 levels deep ([scheduler] max_request_depth)"
        assert found == {**kept, REFUSED: [named, reason]}
