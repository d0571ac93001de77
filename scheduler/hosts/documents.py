"""Contents that many rows share, kept once: documents, and combinations of a row's values.

Thousands of hosts share a few dozen values of ``cpu_info``, ``stats`` and the like.  A pool
numbers the distinct contents, parses each at most once and forgets it with its last user.
Numbers are reused, so arrays indexed by them stay small.
"""

from __future__ import annotations

import copy
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from scheduler import errors

_UNPARSED = object()
#: A shorter text is not worth the time that packing takes; at 100,000 hosts the long texts that
#: no two hosts share outweigh everything else.
_PACKED_FROM_CHARACTERS = 200
_DIGEST_BYTES = 16
#: Predicates remembered per pool; those not asked for longest make room.  Twenty flavors with
#: three extra specs each need 60.
_MOST_MEMOS = 128


class _Entry:
    """One content; of a long text only the digest and the compressed form are kept."""

    __slots__ = ("_content", "key", "parsed", "users")

    def __init__(self, key: Hashable, content: Hashable) -> None:
        self.key = key
        self._content = zlib.compress(_encoded(content)) if _is_long(content) else content
        self.parsed: Any = _UNPARSED
        self.users = 0

    @property
    def content(self) -> Any:
        kept = self._content
        if type(kept) is not bytes:
            return kept
        return zlib.decompress(kept).decode("utf-8", "surrogatepass")


def _is_long(content: Hashable) -> bool:
    return type(content) is str and len(content) >= _PACKED_FROM_CHARACTERS


def _encoded(text: Any) -> bytes:
    encoded: bytes = text.encode("utf-8", "surrogatepass")
    return encoded


def _key(content: Hashable) -> Hashable:
    if not _is_long(content):
        return content
    return hashlib.blake2b(_encoded(content), digest_size=_DIGEST_BYTES).digest()


class Memo:
    """The answers to one question about contents, by number."""

    def __init__(self, dtype: Any) -> None:
        self.known = np.zeros(0, dtype=np.bool_)
        self.values = np.zeros(0, dtype=dtype)

    def grow(self, size: int) -> None:
        """Make room for numbers below *size*."""
        more = size - len(self.known)
        if more > 0:
            self.known = np.append(self.known, np.zeros(more, dtype=np.bool_))
            self.values = np.append(self.values, np.zeros(more, dtype=self.values.dtype))

    def missing(self, numbers: np.ndarray) -> list[int]:
        """The distinct *numbers* without an answer, sorted."""
        known = self.known[numbers]
        return [] if known.all() else np.unique(numbers[~known]).tolist()

    def put(self, number: int, value: Any) -> None:
        """Remember the answer about *number*."""
        self.values[number] = value
        self.known[number] = True


class DocumentPool:
    """Distinct contents of one column; *parse* turns a content into what filters read.

    A content that it refuses counts as none: *complain* is given its number and the error.
    """

    def __init__(
        self,
        parse: Callable[[Any], Any] = lambda content: content,
        complain: Callable[[int, errors.NovaException], None] = lambda _number, _error: None,
    ) -> None:
        self._parse = parse
        self._complain = complain
        self._numbers: dict[Hashable, int] = {}
        self._entries: dict[int, _Entry] = {}
        self._free: list[int] = []
        self._memos: OrderedDict[Hashable, Memo] = OrderedDict()
        self._derived: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def capacity(self) -> int:
        """One more than the highest number in use."""
        return len(self._entries) + len(self._free)

    def copy(self) -> DocumentPool:
        """A pool of the same contents under the same numbers, with users of its own, and silent."""
        twin = DocumentPool(self._parse)
        twin._numbers = dict(self._numbers)
        twin._entries = {number: copy.copy(entry) for number, entry in self._entries.items()}
        twin._free = list(self._free)
        return twin

    def acquire(self, content: Hashable) -> int:
        """Number of *content*, now with one more user."""
        key = _key(content)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._new_number()
            self._entries[number] = _Entry(key, content)
        self._entries[number].users += 1
        return number

    def _new_number(self) -> int:
        self._derived.clear()
        if not self._free:
            return len(self._entries)
        number = self._free.pop()
        for memo in self._memos.values():
            memo.known[number : number + 1] = False  # it may be shorter
        return number

    def release(self, number: int) -> None:
        """Take one user away; a content without users is forgotten."""
        entry = self._entries[number]
        entry.users -= 1
        if entry.users == 0:
            del self._entries[number]
            del self._numbers[entry.key]
            self._free.append(number)
            self._derived.clear()

    def find(self, contents: Iterable[Hashable]) -> list[int]:
        """The numbers of those *contents* that are there."""
        found = (self._numbers.get(_key(each)) for each in contents)
        return [number for number in found if number is not None]

    def content(self, number: int) -> Any:
        """The content as it was stored."""
        return self._entries[number].content

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

    def every_parsed(self) -> list[Any]:
        """All parsed contents, each once."""
        return [self.parsed(number) for number in list(self._entries)]

    def derived(self, name: str, read: Callable[[list[Any]], Any]) -> Any:
        """``read(every_parsed())``, found out again when a content has come or gone."""
        if name not in self._derived:
            self._derived[name] = read(self.every_parsed())
        return self._derived[name]

    def memo(self, key: Hashable, dtype: Any) -> Memo:
        """The answers to the question *key*, with room for all numbers; None: forgotten at once."""
        memo = self._memos.get(key) if key is not None else None
        if memo is None:
            memo = Memo(dtype)
        if key is not None:
            self._memos[key] = memo
            self._memos.move_to_end(key)
            if len(self._memos) > _MOST_MEMOS:
                self._memos.popitem(last=False)
        memo.grow(self.capacity)
        return memo


class Combinations:
    """Numbers for the distinct combinations of some values of a row, kept up as rows change.

    ``numbers[row]`` is that of the row's own; ``pool`` gives the combination as a tuple.
    """

    def __init__(self, read: Callable[[int], tuple[Any, ...]]) -> None:
        self.pool = DocumentPool()
        self.numbers = np.zeros(0, dtype=np.int64)
        #: Rows that have changed since their number was looked up.
        self.stale: set[int] = set()
        self._read = read

    def refresh(self, capacity: int) -> None:
        """Bring ``numbers`` up to date.

        All stale rows let go of their old numbers first: a combination that names a document by
        its number must not outlive that document.
        """
        if (begin := len(self.numbers)) < capacity:
            self.numbers = np.append(self.numbers, np.full(capacity - begin, -1))
            self.stale.update(range(begin, capacity))
        for row in self.stale:
            if (number := int(self.numbers[row])) >= 0:
                self.pool.release(number)
        for row in self.stale:
            self.numbers[row] = self.pool.acquire(self._read(row))
        self.stale.clear()
