"""Networks that a request asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from scheduler import errors
from scheduler.objects.base import WireObject
from scheduler.objects.fields import IP, STR, UUID, Field
from scheduler.objects.nested import ListObject, elements
from scheduler.objects.registry import register

_TUPLE = ("network_id", "address", "port_id", "pci_request_id", "arq_uuid", "device_profile")
_TUPLE_LENGTHS = (2, 4, 6)


@register
class NetworkRequest(WireObject):
    """One network or port (objects page, 7)."""

    VERSION = "1.3"
    FIELDS = {
        "network_id": Field(STR, nullable=True),
        "address": Field(IP, nullable=True),
        "port_id": Field(UUID, nullable=True),
        "pci_request_id": Field(UUID, nullable=True),
        "tag": Field(STR, nullable=True),
        "arq_uuid": Field(UUID, nullable=True, since=(1, 3)),
        "device_profile": Field(STR, nullable=True, since=(1, 3)),
    }

    @classmethod
    def from_tuple(cls, values: Sequence[Any]) -> Self:
        """Read one of the tuples that older callers send; InvalidRequest for other lengths."""
        if len(values) not in _TUPLE_LENGTHS:
            raise errors.InvalidRequest(
                field=cls.__name__, reason=f"a tuple of {len(values)} elements"
            )
        return cls(**dict(zip(_TUPLE, values, strict=False)))

    def to_tuple(self, length: int = 6) -> tuple[str | None, ...]:
        """The tuple form of that many elements: 6 of today, 4 of Newton, 2 without ports."""
        values = (getattr(self, name) for name in _TUPLE[:length])
        return tuple(None if value is None else str(value) for value in values)


@register
class NetworkRequestList(ListObject):
    """All networks of a request."""

    VERSION = "1.1"
    FIELDS = elements(NetworkRequest)

    @classmethod
    def from_tuples(cls, tuples: Iterable[Sequence[Any]] | None) -> Self:
        """Read the list of tuples that older callers send instead; null is empty."""
        return cls(objects=[NetworkRequest.from_tuple(values) for values in tuples or ()])

    def as_tuples(self, length: int = 6) -> list[tuple[str | None, ...]]:
        """The list of tuples; see :meth:`NetworkRequest.to_tuple`."""
        return [request.to_tuple(length) for request in self]

    @property
    def auto_allocate(self) -> bool:
        """Whether the network shall be made up for the request."""
        return [request.network_id for request in self] == ["auto"]

    @property
    def no_allocate(self) -> bool:
        """Whether the request explicitly wants no network."""
        return [request.network_id for request in self] == ["none"]
