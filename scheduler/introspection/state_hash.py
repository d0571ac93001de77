"""One hash of all that a decision of a worker depends on.

Workers that know the same have the same hash, and one whose hash has stayed has stayed as it was.
Times are left out: heartbeats and reports that change nothing else come all the time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable

#: Times, which say nothing of what is decided.
_LEFT_OUT: Final = frozenset({"service_last_seen", "updated_at"})
_DIGEST_BYTES: Final = 16


def state_hash(table: HostTable, reservations: Reservations) -> str:
    """The hash of both as hexadecimal digits; nobody may change them meanwhile."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in _parts(table, reservations):
        digest.update(part)
        time.sleep(0)  # requests come first, also under eventlet
    return digest.hexdigest()


def _parts(table: HostTable, reservations: Reservations) -> Iterator[bytes]:
    keys = sorted(table.rows, key=lambda key: (key[0], key[1] or ""))
    rows = np.array([table.rows[key] for key in keys], dtype=np.int64)
    yield _bytes(keys)
    for name in columns.COLUMN_TYPES:
        if name not in _LEFT_OUT:
            yield table.column(name)[rows].tobytes()
    for name in columns.DOCUMENT_PARSERS:
        yield from _of_documents(table, name, rows)
    for name in columns.OBJECT_COLUMNS:
        yield _bytes([table.text(row, name) for row in rows.tolist()])
    yield _bytes(sorted(table.cells.items()))
    yield _bytes(sorted(_homes(table)))
    yield _bytes(sorted(map(_promise, reservations)))


def _of_documents(table: HostTable, name: str, rows: np.ndarray) -> Iterable[bytes]:
    """Per row the digest of its document, which is worked out once per distinct document."""
    numbers, positions = np.unique(table.document_numbers(name)[rows], return_inverse=True)
    pool = table.pools[name]
    of_number = [
        hashlib.blake2b(_document(pool, name, number), digest_size=_DIGEST_BYTES).digest()
        for number in numbers.tolist()
    ]
    return [of_number[position] for position in positions.tolist()]


def _document(pool: Any, name: str, number: int) -> bytes:
    """A document that picks change is taken as what it says, and not in which form it is kept."""
    is_changed = name in columns.CHANGED_BY_RESERVATIONS
    return _bytes(pool.parsed(number) if is_changed else pool.content(number))


def _homes(table: HostTable) -> Iterator[tuple[str, str]]:
    return iter(table.host_of_instance.items())


def _promise(pick: Reservation) -> tuple[Any, ...]:
    amount = pick.amount
    return (*pick.key, pick.uuid or "", amount.ram_mb, amount.disk_mb, amount.vcpus)


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """What JSON can hold of the values of cells and devices."""
    if isinstance(value, frozenset):
        return sorted(value)
    names = _FIELDS.get(type(value))
    if names is None:
        fields = dataclasses.fields(value)
        names = _FIELDS[type(value)] = tuple(each.name for each in fields if each.compare)
    return [getattr(value, name) for name in names]


_FIELDS: dict[type, tuple[str, ...]] = {}
