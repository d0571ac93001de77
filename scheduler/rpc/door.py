"""What is larger or deeper than a message may be is not let in, but its sender gets an answer.

The library makes Python objects, several times as large, of whatever the broker brings, inflates
what is compressed without an end, and runs out of stack over a deep context after it has
acknowledged the message.  Here a short message takes the place of one that is too large, before
the library looks at it, and of one that is too deep, before the library copies anything of it.
"""

from __future__ import annotations

import bz2
import json
import lzma
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from oslo_log import log as logging

from scheduler import errors
from scheduler.rpc.limits import MessageLimits

LOG = logging.getLogger(__name__)

SIZE_KEY: Final = "_size_bytes"
"""Of the message that stands for one that is too large: how large that is."""
DEPTH_KEY: Final = "_too_deep"
"""Of the message that stands for one that is too deep: what of it is."""

COMPRESSION: Final = "compression"
INFLATERS: Final[Mapping[str, Callable[[], Any]]] = {
    "application/x-gzip": zlib.decompressobj,
    "application/x-bz2": bz2.BZ2Decompressor,
    "application/x-lzma": lzma.LZMADecompressor,
}
"""By the name in the header: what can be told where to stop."""
_BROKEN: Final = (LookupError, TypeError, ValueError, OSError, EOFError, zlib.error, lzma.LZMAError)

_KEPT: Final = ("method", "_msg_id", "_reply_q", "_unique_id", "_context_request_id")
_PATTERNS: Final = {
    name: re.compile(rb'"%s\\?":\s*\\?"([^"\\]{1,200})' % name.encode()) for name in _KEPT
}
"""What is looked for in a body that is too large: what it is, and whom to answer."""


def guard(consumer: Any, limits: MessageLimits) -> None:
    """Have *consumer*, of the library, never read a body, or pass on a message, beyond *limits*."""
    receive, pass_on = consumer._callback, consumer.callback

    def receive_bounded(message: Any) -> None:
        _bound(message, limits.most_bytes)
        receive(message)

    def pass_on_bounded(message: Any) -> None:
        try:
            limits.check_depth(message)
        except errors.InvalidRequest as error:
            known = {name: message[name] for name in _KEPT if isinstance(message.get(name), str)}
            message.clear()
            message.update(known, **{DEPTH_KEY: error.kwargs["field"]})
        pass_on(message)

    consumer._callback, consumer.callback = receive_bounded, pass_on_bounded


def refuse(message: Mapping[str, Any], limits: MessageLimits) -> None:
    """Raise InvalidRequest where *message* stands for one that was not let in."""
    if SIZE_KEY in message:
        raise limits.too_large(message[SIZE_KEY])
    if DEPTH_KEY in message:
        raise limits.too_deep(message[DEPTH_KEY])


def _bound(message: Any, most_bytes: int) -> None:
    headers = message.properties.get("application_headers") or {}
    if COMPRESSION in headers:
        name = headers.pop(COMPRESSION)
        message.body = _inflated(name, _as_bytes(message.body), most_bytes + 1)
    size = len(message.body)
    if size > most_bytes:
        message.body = _stand_in(_as_bytes(message.body), size)
        message.properties["content_type"] = "application/json"
        message.properties["content_encoding"] = "utf-8"


def _inflated(name: Any, body: bytes, most_bytes: int) -> bytes:
    """Up to so many bytes of what was compressed; nothing, which nobody can read, if it was not."""
    try:
        inflated: bytes = INFLATERS[name]().decompress(body, most_bytes)
    except _BROKEN as error:
        LOG.debug("A message is compressed by %.50r, and cannot be inflated: %s", name, error)
        return b""
    return inflated


def _stand_in(body: bytes, size: int) -> bytes:
    found = {name: pattern.search(body) for name, pattern in _PATTERNS.items()}
    known = {name: each[1].decode("utf-8", "replace") for name, each in found.items() if each}
    LOG.warning("A message of more than %d bytes is not read: %s", size - 1, known)
    message = json.dumps({**known, SIZE_KEY: size})
    return json.dumps({"oslo.version": "2.0", "oslo.message": message}).encode()


def _as_bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)
