"""How large and how deep a message may be that anybody on the bus sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler import errors

NAMELESS: Final = "''"
CONTEXT_PREFIX: Final = "_context_"
"""Of the keys of the context in a message."""
LONGEST_NAME: Final = 200
"""Characters of a name that is told; far more than any has."""


@dataclass(frozen=True)
class MessageLimits:
    """What ``[scheduler]`` says."""

    most_bytes: int
    most_levels: int

    @classmethod
    def from_conf(cls, conf: Any) -> MessageLimits:
        """As the options say."""
        options = conf.scheduler
        return cls(options.max_message_bytes, options.max_request_depth)

    def check_depth(self, message: Mapping[str, Any]) -> None:
        """Raise InvalidRequest naming the argument, or other part, that nests too deeply.

        The message itself is the first level.  With that, nothing that works on one runs out of
        stack, and where something does it is no mistake of the sender.
        """
        if not _is_deeper(self.most_levels, dict(message)):  # a class of the library's
            return
        for name, part, levels in _parts(message):
            if _is_deeper(self.most_levels - levels, part):
                raise self.too_deep(name.removeprefix(CONTEXT_PREFIX))

    def too_deep(self, name: Any) -> errors.InvalidRequest:
        """What the sender of a message is told of which *name* nests too deeply."""
        reason = f"nested more than {self.most_levels} levels deep ([scheduler] max_request_depth)"
        return errors.InvalidRequest(field=f"{name!s:.{LONGEST_NAME}}" or NAMELESS, reason=reason)

    def too_large(self, size_bytes: Any) -> errors.InvalidRequest:
        """What the sender of a message of that size is told."""
        reason = f"{size_bytes!s:.20} bytes; [scheduler] max_message_bytes allows {self.most_bytes}"
        return errors.InvalidRequest(field="message", reason=reason)


def _parts(message: Mapping[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Name, value, and the levels around it; the arguments before what holds them."""
    for levels, holder in ((2, message.get("args")), (1, message)):
        if isinstance(holder, Mapping):
            for name, value in holder.items():
                yield name, value, levels


def _is_deeper(levels: int, value: Any) -> bool:
    """Whether lists and dicts nest in more than so many levels, *value* being the first."""
    layer = [value] if type(value) is dict or type(value) is list else []
    for _ in range(levels):
        inner: list[Any] = []
        for each in layer:
            inner.extend(each.values() if type(each) is dict else each)
        layer = [value for value in inner if type(value) is dict or type(value) is list]
        if not layer:
            return False
    return bool(layer)
