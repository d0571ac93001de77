"""The small records that pass from one stage of ``build_instances`` to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler import objects
from scheduler.rpc.context import RequestContext


@dataclass(frozen=True)
class Candidate:
    """A host for one instance, from a Selection or from the dict of an older scheduler.

    *selection* is None for the latter: nothing can be booked there and nothing passed on.
    """

    host: str
    node: str | None
    limits: dict[str, Any]
    selection: objects.Selection | None


HostLists = list[list[Candidate]]


@dataclass(frozen=True)
class Order:
    """What the caller asked for, the same for every instance of the batch."""

    context: RequestContext
    image: dict[str, Any]
    admin_password: str | None
    injected_files: list[Any]
    requested_networks: objects.NetworkRequestList | None
    security_groups: list[str]


@dataclass(frozen=True)
class Plan:
    """What is known once hosts have been found, the same for every instance of the batch.

    ``request_spec`` is the object the caller gave, if any; ``legacy_spec`` the dict form made from
    it or from the instances; ``filter_properties`` already count this attempt.  A plan that
    ``needs_claim`` has alternates that nobody has booked yet.
    """

    order: Order
    spec: objects.RequestSpec
    legacy_spec: dict[str, Any]
    filter_properties: dict[str, Any]
    request_spec: objects.RequestSpec | None
    host_lists: HostLists
    needs_claim: bool


@dataclass(frozen=True)
class BuildCast:
    """What a host is told about one instance.

    ``legacy_spec`` goes to computes of the 4.x interface in the place of ``request_spec``.
    """

    order: Order
    instance: objects.Instance
    request_spec: objects.RequestSpec
    legacy_spec: dict[str, Any]
    filter_properties: dict[str, Any]
    block_device_mapping: objects.BlockDeviceMappingList
    node: str | None
    limits: dict[str, Any]
    host_list: list[objects.Selection]
    accel_uuids: list[str]
