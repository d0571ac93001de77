"""The answer to a request, kept with its claims: who asks again gets the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scheduler import errors, objects

REFUSED = "refused"


def to_text(selections: Sequence[objects.Selection]) -> str:
    """The Selections of one instance as text."""
    return json.dumps(
        [[objects.to_primitive(each), _exact_numbers(each)] for each in selections],
        separators=(",", ":"),
    )


def refusal_to_text(refusal: errors.NoValidHost) -> str:
    """The answer that there is no host, as text."""
    return json.dumps({REFUSED: refusal.kwargs.get("reason", "")})


def of_text(text: str) -> list[objects.Selection]:
    """The Selections that :func:`to_text` wrote, with the fractions of their limits.

    Raises NoValidHost where the answer was that, in the words of :func:`refusal_to_text`.
    """
    content = json.loads(text)
    if isinstance(content, dict):
        raise errors.NoValidHost(reason=content[REFUSED])
    selections = []
    for primitive, exact in content:
        selection = objects.from_primitive(primitive)
        selection.limits_exact = exact
        selections.append(selection)
    return selections


def _exact_numbers(selection: objects.Selection) -> dict[str, Any]:
    limits = getattr(selection, "limits_exact", None) or {}
    return {name: value for name, value in limits.items() if isinstance(value, int | float)}
