"""Messages on the bus: the envelope around each, and limits of size, nesting and names.

A message is a JSON text in a JSON envelope; very old senders leave the envelope out (reference
page rpc, section 10).

The RPC library makes Python objects, several times as large, of whatever the broker brings,
inflates what is compressed without an end, and runs out of stack over a deep context after it has
acknowledged the message.  Here a short message takes the place of one beyond a limit before the
library sees it, and its sender is answered with InvalidRequest.
"""

import bz2
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from oslo_log import log as logging
from oslo_serialization import jsonutils

from scheduler import errors
from scheduler.objects.registry import is_deeper

LOG = logging.getLogger(__name__)

VERSION_KEY: Final = "oslo.version"
MESSAGE_KEY: Final = "oslo.message"
VERSION: Final = "2.0"

UNIQUE_ID: Final = "_unique_id"
MESSAGE_ID: Final = "_msg_id"
REPLY_QUEUE: Final = "_reply_q"
CONTEXT_PREFIX: Final = "_context_"
"""Of the keys of the context in a message."""
REDELIVERED: Final = "_redelivered"
"""Never sent: added to a request that the broker had brought to somebody before."""
PROPERTIES: Final = {
    "content_type": "application/json",
    "content_encoding": "utf-8",
    "priority": 0,
    "application_headers": {},
    "delivery_mode": 2,
}
"""Of a message as the library sends it."""

NAMELESS: Final = "''"
LONGEST_NAME: Final = 200
"""Characters of a name in an error text; far more than any has."""

_MOST_NAME_BYTES: Final = 255
"""Of a short text of AMQP."""

REFUSED: Final = "_refused"
"""Of the message in place of one beyond a limit: field and reason of the error for its sender."""

COMPRESSION: Final = "compression"
INFLATERS: Final[Mapping[str, Callable[[], Any]]] = {
    "application/x-gzip": zlib.decompressobj,
    "application/x-bz2": bz2.BZ2Decompressor,
    "application/x-lzma": lzma.LZMADecompressor,
}
"""By the name in the header: decompressors that stop at a limit."""
_BROKEN: Final = (LookupError, TypeError, ValueError, OSError, EOFError, zlib.error, lzma.LZMAError)

_KEPT: Final = ("method", "_msg_id", "_reply_q", "_unique_id", "_context_request_id")
_PATTERNS: Final = {
    name: re.compile(rb'"%s\\?":\s*\\?"([^"\\]{1,200})' % name.encode()) for name in _KEPT
}
"""Patterns for a body that is too large: what it is, and whom to answer."""


def pack(message: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(message)
    except TypeError:  # something that JSON does not know: the library makes a primitive of it
        text = str(jsonutils.dumps(message))
    return json.dumps({VERSION_KEY: VERSION, MESSAGE_KEY: text}).encode()


def unpack(body: bytes | str) -> dict[str, Any] | None:
    """Return the message in *body*, with or without its envelope; None if it cannot be read."""
    try:
        message = json.loads(body if isinstance(body, str) else bytes(body).decode())
        if isinstance(message, dict) and VERSION_KEY in message and MESSAGE_KEY in message:
            is_known = message[VERSION_KEY] == VERSION
            message = json.loads(message[MESSAGE_KEY]) if is_known else None
    except (TypeError, ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def replace(raw: Any, message: dict[str, Any]) -> None:
    """Have *raw*, a message of the AMQP library, contain *message* instead."""
    raw.body = pack(message)
    raw.properties["content_type"] = "application/json"
    raw.properties["content_encoding"] = "utf-8"


def refusal(given: Any) -> errors.InvalidRequest:
    """The error for the sender of a message beyond a limit; *given* may be from anybody."""
    field, reason, *_ = (*given, "", "") if isinstance(given, list) else ("message", given)
    return errors.InvalidRequest(
        field=f"{field!s:.{LONGEST_NAME}}", reason=f"{reason!s:.{LONGEST_NAME}}"
    )


@dataclass(frozen=True)
class MessageLimits:
    """``[scheduler] max_message_bytes`` and ``max_request_depth``."""

    most_bytes: int
    most_levels: int

    @classmethod
    def from_conf(cls, conf: Any) -> Self:
        options = conf.scheduler
        return cls(options.max_message_bytes, options.max_request_depth)

    def bound_size(self, raw: Any) -> None:
        """Inflate *raw*, a message of the AMQP library; replace it if it is too large."""
        headers = raw.properties.get("application_headers") or {}
        if COMPRESSION in headers:
            name = headers.pop(COMPRESSION)
            raw.body = _inflated(name, _as_bytes(raw.body), self.most_bytes + 1)
        size = len(raw.body)
        if size > self.most_bytes:
            known = _found_in(_as_bytes(raw.body))
            LOG.warning("A message of more than %d bytes is not read: %s", size - 1, known)
            reason = f"{size} bytes; [scheduler] max_message_bytes allows {self.most_bytes}"
            replace(raw, {**known, REFUSED: ["message", reason]})

    def bound_form(self, raw: Any) -> bool:
        """Replace *raw* if it is too deep, or nobody can be answered; False if it is no message."""
        message = unpack(_as_bytes(raw.body))
        if message is None:
            return False
        try:
            self.check(message)
        except errors.InvalidRequest as error:
            known = {name: message[name] for name in _KEPT if _is_name(message.get(name))}
            replace(raw, {**known, REFUSED: [error.kwargs["field"], error.kwargs["reason"]]})
        return True

    def check(self, message: Mapping[str, Any]) -> None:
        """Raise InvalidRequest for what no queue or id can be, or a part that nests too deeply."""
        for name in (REPLY_QUEUE, MESSAGE_ID):
            if message.get(name) is not None and not _is_name(message[name]):
                reason = f"{message[name]!r:.50} is no text of at most {_MOST_NAME_BYTES} bytes"
                raise errors.InvalidRequest(field=name, reason=reason)
        # The message itself is the first level.  With that, nothing that works on one runs out of
        # stack, and where something does it is no mistake of the sender.
        if not is_deeper(self.most_levels, message):
            return
        reason = f"nested more than {self.most_levels} levels deep ([scheduler] max_request_depth)"
        for name, part, levels in _parts(message):
            if is_deeper(self.most_levels - levels, part):
                field = name.removeprefix(CONTEXT_PREFIX)[:LONGEST_NAME] or NAMELESS
                raise errors.InvalidRequest(field=field, reason=reason)


def _is_name(value: Any) -> bool:
    """True for what AMQP takes as a short text."""
    try:
        return type(value) is str and len(value.encode()) <= _MOST_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _parts(message: Mapping[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Name, value, and the levels around it; the arguments before what holds them."""
    for levels, holder in ((2, message.get("args")), (1, message)):
        if isinstance(holder, Mapping):
            for name, value in holder.items():
                yield name, value, levels


def _inflated(name: Any, body: bytes, most_bytes: int) -> bytes:
    """Up to so many bytes of what was compressed; nothing, which nobody can read, if it was not."""
    try:
        inflated: bytes = INFLATERS[name]().decompress(body, most_bytes)
    except _BROKEN as error:
        LOG.debug("A message is compressed by %.50r, and cannot be inflated: %s", name, error)
        return b""
    return inflated


def _found_in(body: bytes) -> dict[str, str]:
    found = {name: pattern.search(body) for name, pattern in _PATTERNS.items()}
    return {name: each[1].decode("utf-8", "replace") for name, each in found.items() if each}


def _as_bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)
