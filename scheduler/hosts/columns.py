"""The columns of the host table, and the contents that many rows share.

Attribute names are those of Nova's HostState (reference page scheduling, section 6.1).  Thousands
of hosts share a few dozen values of ``cpu_info``, ``stats`` and the like.  A pool numbers the
distinct contents of one column, parses each at most once and forgets it with its last user.
Numbers are reused, so arrays indexed by them stay small.
"""

import datetime
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from oslo_utils import timeutils

from scheduler import errors, objects
from scheduler.numa import HostTopology
from scheduler.objects.registry import read_json
from scheduler.pci import Pools

#: Seconds since the epoch where there is no time.
NEVER = float("-inf")
_EPOCH = datetime.datetime(1970, 1, 1)
INT_COLUMNS = (
    *("total_usable_ram_mb", "free_ram_mb", "total_usable_disk_gb", "disk_mb_used", "free_disk_mb"),
    *("vcpus_total", "vcpus_used", "num_instances", "num_io_ops", "failed_builds"),
    "hypervisor_version",
)
RATIO_BITS = {"cpu_allocation_ratio": 1, "ram_allocation_ratio": 2, "disk_allocation_ratio": 4}
FLOAT_COLUMNS = ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")
# ``node_id`` orders the rows; times are seconds since the epoch, ``-inf`` where the database holds
# none.
INTERNAL_COLUMNS = {
    "node_id": np.int64,
    "reported": np.bool_,
    # Which of its allocation ratios (RATIO_BITS) the host leaves to the configuration.
    "ratios_left_open": np.uint8,
    "updated_at": np.float64,
    "service_disabled": np.bool_,
    "service_forced_down": np.bool_,
    "service_last_seen": np.float64,
    # Only rows whose host has a service record are candidates.
    "has_service": np.bool_,
    # A bare-metal node is taken as a whole.
    "bare_metal": np.bool_,
}
#: Kept in pools like documents, and read as they are.
TEXT_COLUMNS = ("host", "nodename", "uuid", "host_ip", "hypervisor_type", "cell_uuid")

COLUMN_TYPES: dict[str, type] = {
    # Whole numbers below 2**53 are exact in doubles, which take half the time of integers to
    # multiply with ratios and to normalise.
    **dict.fromkeys(INT_COLUMNS, np.float64),
    **dict.fromkeys(FLOAT_COLUMNS, np.float64),
    **INTERNAL_COLUMNS,
}


def seconds(when: datetime.datetime | None) -> float:
    """Seconds since the epoch of a naive UTC (or aware) time; never for None, or for no time.

    What is no date at all (``0000-00-00`` of MySQL) comes as the text that it is.
    """
    if not isinstance(when, datetime.datetime):
        return NEVER
    return (timeutils.normalize_time(when) - _EPOCH).total_seconds()


def _json_of(kind: type) -> Callable[[str | None], Any]:
    def parse(text: str | None) -> Any:
        if not text:
            return kind()
        try:
            value = read_json(text)
            if not isinstance(value, kind):
                raise ValueError(f"not a JSON {kind.__name__}")
        except ValueError as error:
            raise errors.InvalidRequest(field=f"{text:.80}", reason=str(error)) from error
        return value

    return parse


def _as_it_is(content: Any) -> Any:
    return content


def _parse_aggregates(content: tuple[Any, ...] | None) -> list[objects.Aggregate]:
    """Old aggregates have no uuid; what is None of one stays unset."""
    names = ("id", "uuid", "name")
    found = []
    for *values, metadata in content or ():
        fields = {k: v for k, v in zip(names, values, strict=True) if v is not None}
        found.append(objects.Aggregate(**fields, metadata=dict(metadata)))
    return found


#: The instances on a row's host, as the key under which they are shown.
INSTANCES = "instances"
#: Numbers that every reservation changes.
ADDED_BY_RESERVATIONS = ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")
#: Documents that change while a decision is taken: to values, where the host reported text.
CHANGED_BY_RESERVATIONS = frozenset(("numa_topology", "pci_stats"))

DOCUMENT_PARSERS: dict[str, Callable[[Any], Any]] = {
    "cpu_info": _as_it_is,
    "stats": _json_of(dict),
    "supported_instances": _json_of(list),
    "numa_topology": lambda it: it if isinstance(it, HostTopology) else HostTopology.from_text(it),
    # None where the host never reported; a host without devices has no pools.
    "pci_stats": lambda it: it if it is None or isinstance(it, Pools) else Pools.from_text(it),
    "metrics": lambda text: list(objects.MonitorMetricList.from_text(text)),
    "aggregates": _parse_aggregates,
}
POOL_PARSERS = {**dict.fromkeys(TEXT_COLUMNS, _as_it_is), **DOCUMENT_PARSERS}

_UNPARSED = object()
#: A shorter text is not worth the time that packing takes; at 100,000 hosts the long texts that
#: no two hosts share outweigh everything else.
_PACKED_FROM_CHARACTERS = 200
_DIGEST_BYTES = 16
_ENCODING = "utf-8", "surrogatepass"
#: Predicates remembered per pool; those not asked for longest make room.  Twenty flavors with
#: three extra specs each need 60.
_MOST_MEMOS = 128


def _key(content: Any) -> Hashable:
    """The digest of a long text, else the content itself."""
    if type(content) is not str or len(content) < _PACKED_FROM_CHARACTERS:
        return content
    return hashlib.blake2b(content.encode(*_ENCODING), digest_size=_DIGEST_BYTES).digest()


def constant(value: Any, count: int, dtype: Any) -> np.ndarray:
    """A read-only array of *count* times *value*, which takes no memory for each."""
    # As np.broadcast_to makes it, in a tenth of its 10 µs; some weighers need one each time.
    found = np.ndarray((count,), dtype, np.array(value, dtype=dtype), 0, (0,))
    found.flags.writeable = False
    return found


class Memo:
    """The answers to one question about contents, by number."""

    def __init__(self, dtype: Any) -> None:
        self.known = np.zeros(0, dtype=np.bool_)
        self.values = np.zeros(0, dtype=dtype)
        #: True when all numbers are known, and when they have the same answer besides (None: that
        #: was not looked at yet): both save 10 µs per look at 10,000 hosts.
        self._is_complete = False
        self._is_uniform: bool | None = None

    def grow(self, size: int) -> None:
        more = size - len(self.known)
        if more > 0:
            self.known = np.append(self.known, np.zeros(more, dtype=np.bool_))
            self.values = np.append(self.values, np.zeros(more, dtype=self.values.dtype))
            self._is_complete = False

    def forget(self, number: int) -> None:
        """Drop the answer for *number*, which is that of another content now."""
        if number < len(self.known):
            self.known[number] = self._is_complete = False

    def of_numbers(
        self, numbers: np.ndarray, answer: Callable[[list[int]], Mapping[int, Any]]
    ) -> np.ndarray:
        """The answer about each of *numbers*; *answer* is asked for those that are missing."""
        if not self._is_complete:
            known = self.known[numbers]
            if not known.all():
                for number, value in answer(np.unique(numbers[~known]).tolist()).items():
                    self.values[number] = value
                    self.known[number] = True
            self._is_complete, self._is_uniform = bool(self.known.all()), None
        elif self._is_uniform is None:  # not where each decision brings another content
            self._is_uniform = bool((self.values == self.values[:1]).all())
        if self._is_uniform and len(numbers):
            return constant(self.values[0], len(numbers), self.values.dtype)
        return self.values.take(numbers)


class DocumentPool:
    """Distinct contents of one column; *parse* turns a content into what filters read.

    A content that it refuses counts as none: *complain* is given its number and the error.
    """

    def __init__(
        self,
        parse: Callable[[Any], Any] = _as_it_is,
        complain: Callable[[int, errors.NovaException], None] = lambda _number, _error: None,
    ) -> None:
        self._parse = parse
        self._complain = complain
        self._numbers: dict[Hashable, int] = {}
        #: By number; of a long text the key is the digest, and the compressed form is kept besides.
        self._keys: list[Hashable] = []
        self._packed: dict[int, bytes] = {}
        self._parsed: list[Any] = []
        self._users: list[int] = []
        self._free: list[int] = []
        self._memos: OrderedDict[Hashable, Memo] = OrderedDict()
        self._derived: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def capacity(self) -> int:
        """One more than the highest number that was ever in use."""
        return len(self._keys)

    def copy(self) -> "DocumentPool":
        """A pool of the same contents under the same numbers, with users of its own, and silent."""
        twin = DocumentPool(self._parse)
        twin._numbers = dict(self._numbers)
        twin._keys, twin._packed = list(self._keys), dict(self._packed)
        twin._parsed, twin._users = list(self._parsed), list(self._users)
        twin._free = list(self._free)
        return twin

    def acquire(self, content: Any, instead_of: int = -1) -> int:
        """Number of *content*, now with one more user; the number *instead_of* has one less."""
        key = _key(content)
        if instead_of >= 0 and self._keys[instead_of] == key:
            return instead_of
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._add(key)
            if key is not content:
                self._packed[number] = zlib.compress(content.encode(*_ENCODING))
        self._users[number] += 1
        if instead_of >= 0:
            self.release(instead_of)
        return number

    def _add(self, key: Hashable) -> int:
        self._derived.clear()
        if not self._free:
            self._keys.append(key)
            self._parsed.append(_UNPARSED)
            self._users.append(0)
            return len(self._keys) - 1
        number = self._free.pop()
        self._keys[number] = key
        for memo in self._memos.values():
            memo.forget(number)
        return number

    def release(self, number: int) -> None:
        """Take one user away; a content without users is forgotten."""
        self._users[number] -= 1
        if self._users[number] == 0:
            del self._numbers[self._keys[number]]
            self._keys[number], self._parsed[number] = None, _UNPARSED
            self._packed.pop(number, None)
            self._free.append(number)
            self._derived.clear()

    def find(self, contents: Iterable[Hashable]) -> list[int]:
        found = (self._numbers.get(_key(each)) for each in contents)
        return [number for number in found if number is not None]

    def key(self, number: int) -> Hashable:
        """The content, or the digest of a long text: the same for equal contents only."""
        return self._keys[number]

    def content(self, number: int) -> Any:
        packed = self._packed.get(number)
        return self._keys[number] if packed is None else zlib.decompress(packed).decode(*_ENCODING)

    def parsed(self, number: int) -> Any:
        """The parsed content; the same object for every row that shares it."""
        if (parsed := self._parsed[number]) is _UNPARSED:
            try:
                parsed = self._parse(self.content(number))
            except errors.NovaException as error:
                self._complain(number, error)
                parsed = self._parse(None)
            self._parsed[number] = parsed
        return parsed

    def every_parsed(self) -> list[Any]:
        return [self.parsed(number) for number in self._numbers.values()]

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
