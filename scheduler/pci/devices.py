"""PCI pools of a host and PCI requests of an instance, as immutable, hashable values."""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from scheduler import errors, objects

_MANDATORY = ("vendor_id", "product_id", "count")
#: The policy where none is given (section 10.1).
DEFAULT_POLICY = "legacy"


@dataclass(frozen=True, slots=True)
class Pool:
    """*count* devices with the same *properties*, in the place *position* of the whole list."""

    position: int
    count: int
    properties: tuple[tuple[str, Any], ...]
    #: The same by name, and the count when it was read.
    values: Mapping[str, Any] = field(compare=False, repr=False)

    @classmethod
    def from_object(cls, position: int, pool: objects.PciDevicePool) -> Self:
        """The stored *pool*; InvalidRequest when it lacks a mandatory key."""
        missing = [name for name in _MANDATORY if getattr(pool, name) is None]
        if missing:
            raise errors.InvalidRequest(field=f"PciDevicePool.{missing[0]}", reason="is missing")
        # A spec may name the two numbers as well; texts never equal them (section 7.4).
        values = {"numa_node": None, **pool.to_dict()}
        properties = sorted(pair for pair in values.items() if pair[0] != "count")
        return cls(position, pool.count, tuple(properties), values)

    @property
    def numa_node(self) -> int | None:
        """The host cell the devices sit on, or None when that is not known."""
        node: int | None = self.values["numa_node"]
        return node

    def holding(self, count: int) -> Self:
        return replace(self, count=count)

    def to_dict(self) -> dict[str, Any]:
        return {**dict(self.properties), "count": self.count}


@dataclass(frozen=True, slots=True)
class Pools:
    """All pools of a host: those with the fewest keys first, else in the order reported."""

    pools: tuple[Pool, ...] = ()

    @classmethod
    def from_object(cls, pools: Iterable[objects.PciDevicePool]) -> Self:
        """Number the stored *pools* in the order in which they are used up (section 7.2)."""
        ordered = sorted(pools, key=lambda pool: len(pool.to_dict()))
        return cls(tuple(itertools.starmap(Pool.from_object, enumerate(ordered))))

    @classmethod
    def from_text(cls, text: str | None) -> Self:
        """Read ``compute_nodes.pci_stats`` in any of its forms; null means no pools.

        Raises InvalidRequest for a pool without its mandatory keys or with bad values.
        """
        stored = objects.PciDevicePoolList.from_text(text)
        return cls() if stored is None else cls.from_object(stored)

    def to_object(self) -> objects.PciDevicePoolList:
        return objects.PciDevicePoolList(
            objects=[objects.PciDevicePool.from_dict(pool.to_dict()) for pool in self.pools]
        )

    def to_text(self) -> str:
        """The JSON text of the envelope, as the column holds it."""
        return json.dumps(self.to_object().obj_to_primitive())

    def to_dicts(self) -> list[dict[str, Any]]:
        return [pool.to_dict() for pool in self.pools]

    def devices_on(self, node: int) -> int:
        return sum(pool.count for pool in self.pools if pool.numa_node == node)

    def __len__(self) -> int:
        return len(self.pools)


@dataclass(frozen=True, slots=True)
class Request:
    """*count* devices that match one of the *specs*."""

    count: int
    specs: tuple[tuple[tuple[str, str | None], ...], ...]
    policy: str = DEFAULT_POLICY
    alias_name: str | None = None
    #: Providers in Placement to take the devices from, one per device; any where there are none.
    providers: tuple[str, ...] = ()

    @classmethod
    def from_object(
        cls, request: objects.InstancePCIRequest, providers: tuple[str, ...] = ()
    ) -> Self:
        return cls(
            count=request.count,
            specs=tuple(tuple(sorted(spec.items())) for spec in request.spec),
            policy=request.numa_policy or DEFAULT_POLICY,
            alias_name=request.alias_name,
            providers=providers,
        )

    def asks(self, key: str) -> list[str | None]:
        """Per spec the value it wants for *key*, None where it does not name it."""
        return [dict(spec).get(key) for spec in self.specs]


def requests_of(requests: objects.InstancePCIRequests | None) -> tuple[Request, ...]:
    """The requests of an instance, in order; none when there is no object."""
    return () if requests is None else tuple(map(Request.from_object, requests.requests))
