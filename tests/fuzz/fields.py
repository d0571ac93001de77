"""One field of a good message changed: if that is refused, the refusal names the field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.fuzz import mutations, samples, verdicts
from tests.fuzz.verdicts import Verdict
from tests.fuzz.world import World

NOT_LOOKED_AT = ("_msg_id", "_reply_q", "_unique_id", "oslo.version", "ctxt")
"""What the library takes for itself, and does not tell of."""


def messages() -> dict[str, dict[str, Any]]:
    """The messages one field of which is changed: those to one worker among them."""
    return {**samples.messages(), "what_if": samples.what_if()}


def changes(every: int, first: int = 0) -> Iterator[tuple[dict[str, Any], mutations.Path]]:
    """Every *every*-th of all changes, from the *first* on: the message, and where it differs."""
    number = first
    for message in messages().values():
        for path, _value in mutations.parts(message):
            if not path or path[0] in NOT_LOOKED_AT:
                continue
            for value in mutations.VALUES:
                number += 1
                if number % every == 0:
                    yield mutations.with_value(message, path, value), path


def try_out(world: World, message: dict[str, Any], path: mutations.Path) -> Verdict:
    """Send *message*, which is wrong at *path* if it is wrong at all."""
    names = mutations.names_of(message, path)
    return verdicts.of_answer(world.serve(message), names)


def shown(message: dict[str, Any], path: mutations.Path) -> bytes:
    """What was changed, for people."""
    return f"{message.get('method')} {path}: {json.dumps(mutations.at(message, path))}".encode(
        "utf-8", "replace"
    )
