"""Documents per host, kept once per distinct content.

``cpu_info``, ``stats``, ``supported_instances`` and the like are text columns that thousands of
hosts share a few dozen values of.  A pool gives each distinct content a number that is never
used again, parses it at most once, and forgets it when the last row lets go of it.  Long texts
are kept packed, since at 100,000 hosts those that no two hosts share outweigh everything else.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Hashable
from typing import Any

from scheduler import errors

_UNPARSED = object()
#: A shorter text is not worth the time that packing takes.
_PACKED_FROM_CHARACTERS = 200
_DIGEST_BYTES = 16


class _Packed:
    """A long text, compressed."""

    __slots__ = ("data",)

    def __init__(self, text: str) -> None:
        self.data = zlib.compress(text.encode("utf-8", "surrogatepass"))

    @property
    def text(self) -> str:
        return zlib.decompress(self.data).decode("utf-8", "surrogatepass")


class _Entry:
    __slots__ = ("kept", "key", "parsed", "users")

    def __init__(self, key: Hashable, kept: Any) -> None:
        self.key = key
        self.kept = kept
        self.parsed: Any = _UNPARSED
        self.users = 0

    def copy(self) -> _Entry:
        twin = _Entry(self.key, self.kept)
        twin.parsed, twin.users = self.parsed, self.users
        return twin

    @property
    def content(self) -> Any:
        return self.kept.text if isinstance(self.kept, _Packed) else self.kept


def _is_long(content: Hashable) -> bool:
    return isinstance(content, str) and len(content) >= _PACKED_FROM_CHARACTERS


def _key(content: Any) -> Hashable:
    """What tells a content from every other one: itself, or the digest of a long text."""
    if not _is_long(content):
        return content
    text = content.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


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

    def copy(self) -> DocumentPool:
        """A pool of the same contents under the same numbers, with users of its own, and silent."""
        twin = DocumentPool(self._parse, lambda _number, _error: None)
        twin._numbers = dict(self._numbers)
        twin._entries = {number: entry.copy() for number, entry in self._entries.items()}
        twin._next_number = self._next_number
        return twin

    def acquire(self, content: Hashable) -> int:
        """Number of *content*, now with one more user."""
        key = _key(content)
        number = self._numbers.get(key)
        if number is None:
            number = self._next_number
            self._next_number += 1
            self._numbers[key] = number
            kept = _Packed(content) if _is_long(content) else content  # type: ignore[arg-type]
            self._entries[number] = _Entry(key, kept)
        self._entries[number].users += 1
        return number

    def release(self, number: int) -> None:
        """Take one user away; a content without users is forgotten."""
        entry = self._entries[number]
        entry.users -= 1
        if entry.users == 0:
            del self._entries[number]
            del self._numbers[entry.key]

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
