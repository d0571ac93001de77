"""Option types for values that were legal in an old release and are out of range today."""

from __future__ import annotations

from typing import Any

from oslo_config import types
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class ClampedInteger(types.Integer):
    """An integer whose too small values count as the minimum, with one warning.

    An old configuration file must not keep a daemon from starting (reference page config,
    section 10).  A clamped value is converted once per parse, because ConfigOpts remembers what
    it converted; *name* is only for the text of the warning.
    """

    def __init__(self, name: str, minimum: int) -> None:
        super().__init__()
        self.name = name
        self.minimum = minimum

    def __call__(self, value: Any) -> int | float | None:
        number = super().__call__(value)
        if number is None or number >= self.minimum:
            return number
        LOG.warning(
            "Option %s is %s, below its minimum; %s is used instead.",
            self.name,
            number,
            self.minimum,
        )
        return self.minimum

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClampedInteger) and (self.name, self.minimum) == (
            other.name,
            other.minimum,
        )

    __hash__ = None  # type: ignore[assignment]
