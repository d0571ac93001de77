"""Documents per host, kept once per distinct content.

``cpu_info``, ``stats``, ``supported_instances`` and the like are text columns that thousands of
hosts share a few dozen values of.  A pool gives each distinct content a number that is never
used again, parses it at most once, and forgets it when the last row lets go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from scheduler import errors

_UNPARSED = object()


class _Entry:
    __slots__ = ("content", "parsed", "users")

    def __init__(self, content: Hashable) -> None:
        self.content = content
        self.parsed: Any = _UNPARSED
        self.users = 0


class DocumentPool:
    """Distinct contents of one column; *parse* turns a content into what filters read.

    A content that it refuses counts as none: *complain* is given its number and the error.
    """

    def __init__(
        self,
        parse: Callable[[Any], Any],
        complain: Callable[[int, errors.NovaException], None],
    ) -> None:
        self._parse = parse
        self._complain = complain
        self._numbers: dict[Hashable, int] = {}
        self._entries: dict[int, _Entry] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def acquire(self, content: Hashable) -> int:
        """Number of *content*, now with one more user."""
        number = self._numbers.get(content)
        if number is None:
            number = self._next_number
            self._next_number += 1
            self._numbers[content] = number
            self._entries[number] = _Entry(content)
        self._entries[number].users += 1
        return number

    def release(self, number: int) -> None:
        """Take one user away; a content without users is forgotten."""
        entry = self._entries[number]
        entry.users -= 1
        if entry.users == 0:
            del self._entries[number]
            del self._numbers[entry.content]

    def content(self, number: int) -> Any:
        """The content as it was stored."""
        return self._entries[number].content

    def every_parsed(self) -> list[Any]:
        """All parsed contents, each once."""
        return [self.parsed(number) for number in list(self._entries)]

    def parsed(self, number: int) -> Any:
        """The parsed content; the same object for every row that shares it."""
        entry = self._entries[number]
        if entry.parsed is _UNPARSED:
            try:
                entry.parsed = self._parse(entry.content)
            except errors.NovaException as error:
                self._complain(number, error)
                entry.parsed = self._parse(None)
        return entry.parsed
