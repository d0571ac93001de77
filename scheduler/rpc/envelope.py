"""The wire form of a message: a JSON text in a JSON envelope (reference page rpc, section 4)."""

from __future__ import annotations

import json
from typing import Any, Final

from oslo_serialization import jsonutils

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


def pack(message: dict[str, Any]) -> bytes:
    """Return the body of *message*."""
    try:
        text = json.dumps(message)
    except TypeError:  # something that JSON does not know: the library makes a primitive of it
        text = str(jsonutils.dumps(message))
    return json.dumps({VERSION_KEY: VERSION, MESSAGE_KEY: text}).encode()


def unpack(body: bytes | str) -> dict[str, Any] | None:
    """Return the message in *body*; None if it is not packed as :func:`pack` does."""
    try:
        envelope = json.loads(body if isinstance(body, str) else bytes(body).decode())
        if not isinstance(envelope, dict) or envelope.get(VERSION_KEY) != VERSION:
            return None
        message = json.loads(envelope[MESSAGE_KEY])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def replace(raw: Any, message: dict[str, Any]) -> None:
    """Have *raw*, a message of the AMQP library, contain *message* instead."""
    raw.body = pack(message)
    raw.properties["content_type"] = "application/json"
    raw.properties["content_encoding"] = "utf-8"
