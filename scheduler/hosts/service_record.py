"""The service row of a host as filters see it, kept small: there is one for every host."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator, Mapping
from typing import Any

#: Values that thousands of records share, or that the table has already.
_SHARED = ("host", "binary", "topic")
_positions: dict[tuple[str, ...], dict[str, int]] = {}


class ServiceRecord(Mapping[str, Any]):
    """A read-only mapping from column names to values; records of one layout share the names."""

    __slots__ = ("_position", "_values")

    def __init__(self, record: Mapping[str, Any]) -> None:
        names = tuple(record)
        position = _positions.get(names)
        if position is None:
            position = _positions[names] = {name: at for at, name in enumerate(names)}
        self._position = position
        own: dict[Any, Any] = {}  # a heartbeat is several times the same time
        self._values = tuple(_shared(name, record[name], own) for name in names)

    def __getitem__(self, name: str) -> Any:
        return self._values[self._position[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ServiceRecord({dict(self)!r})"


def _shared(name: str, value: Any, own: dict[Any, Any]) -> Any:
    if type(value) is datetime.datetime:
        return own.setdefault(value, value)
    return sys.intern(value) if name in _SHARED and type(value) is str else value
