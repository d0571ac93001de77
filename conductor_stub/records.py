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


def network_requests(given: Any) -> objects.NetworkRequestList | None:
    """The networks asked for as an object, also from the tuples of old callers."""
    if given is None or isinstance(given, objects.NetworkRequestList):
        return given
    return objects.NetworkRequestList.from_tuples(given) if given else None


@dataclass(frozen=True)
class Plan:
    """What is known once hosts have been found, the same for every instance of the batch.

    ``request_spec`` is the object the caller gave, if any; ``legacy_spec`` the dict form made from
    it or from the instances; ``filter_properties`` already count this attempt.  A plan that
    ``needs_claim`` has alternates that nobody has booked yet.  With ``is_new`` the instance was
    made for this build alone: ``spec`` goes to its host as it is, and if its user cancels the
    build nothing of it is left.
    """

    order: Order
    spec: objects.RequestSpec
    legacy_spec: dict[str, Any]
    filter_properties: dict[str, Any]
    request_spec: objects.RequestSpec | None
    host_lists: HostLists
    needs_claim: bool
    is_new: bool = False


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


@dataclass(frozen=True)
class ResizeCast:
    """What a host is told about an instance that moves to it, with *flavor* from then on.

    ``legacy_spec`` goes to computes from before 5.1 in the place of ``request_spec``.
    """

    instance: objects.Instance
    flavor: objects.Flavor
    image: dict[str, Any]
    request_spec: objects.RequestSpec
    legacy_spec: dict[str, Any]
    filter_properties: dict[str, Any]
    node: str | None
    clean_shutdown: bool
    host_list: list[objects.Selection]


@dataclass(frozen=True)
class UnshelveCast:
    """What a host is told about an instance that was without a host for a while."""

    instance: objects.Instance
    image: dict[str, Any] | None
    filter_properties: dict[str, Any]
    node: str | None
    request_spec: objects.RequestSpec
    accel_uuids: list[str]


@dataclass(frozen=True)
class RebuildOrder:
    """What the caller says about a rebuild; the names are the wire's."""

    image_ref: str | None
    orig_image_ref: str | None
    injected_files: list[Any]
    new_pass: str | None
    orig_sys_metadata: dict[str, Any] | None
    bdms: Any
    recreate: bool
    on_shared_storage: bool | None
    preserve_ephemeral: bool

    def arguments(self) -> dict[str, Any]:
        """Each under its name."""
        return dict(vars(self))


@dataclass(frozen=True)
class RebuildCast:
    """What a host is told about an instance that it shall rebuild or take over."""

    order: RebuildOrder
    instance: objects.Instance
    node: str | None
    limits: dict[str, Any] | None
    request_spec: objects.RequestSpec | None
