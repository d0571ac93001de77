"""PCI requests of an instance as immutable, hashable values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

from scheduler import objects

#: What an absent policy means (section 10.1).
DEFAULT_POLICY = "legacy"


@dataclass(frozen=True, slots=True)
class Request:
    """*count* devices that match one of the *specs*."""

    count: int
    specs: tuple[tuple[tuple[str, str | None], ...], ...]
    policy: str = DEFAULT_POLICY
    alias_name: str | None = None
    request_id: str | None = None

    @classmethod
    def of(cls, request: objects.InstancePCIRequest) -> Self:
        """The value of a wire object."""
        return cls(
            count=request.count,
            specs=tuple(tuple(sorted(spec.items())) for spec in request.spec),
            policy=request.numa_policy or DEFAULT_POLICY,
            alias_name=request.alias_name,
            request_id=request.request_id,
        )

    def asks(self, key: str) -> list[str | None]:
        """Per spec the value it wants for *key*, None where it does not name it."""
        return [dict(spec).get(key) for spec in self.specs]


def requests_of(requests: objects.InstancePCIRequests | None) -> tuple[Request, ...]:
    """The requests of an instance, in order; none when there is no object."""
    return () if requests is None else tuple(Request.of(one) for one in requests.requests)


def kinds_of(requests: objects.InstancePCIRequests | None) -> tuple[Request, ...]:
    """The requests of an instance without the ids of their own that each server's have.

    Whether a host has such devices does not depend on those, only who gets which.
    """
    return tuple(dataclasses.replace(each, request_id=None) for each in requests_of(requests))
