"""The request and the answer to it (reference page objects, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

from scheduler import errors
from scheduler.objects import legacy
from scheduler.objects.base import WireObject, to_primitive
from scheduler.objects.fields import BOOL, INT, STR, UUID, BadValue, DictOf, Field, ListOf, fields
from scheduler.objects.image import ImageMeta
from scheduler.objects.nested import ObjectOf
from scheduler.objects.numa import InstanceNUMATopology, NetworkMetadata
from scheduler.objects.pci import InstancePCIRequests
from scheduler.objects.registry import register
from scheduler.objects.request_parts import (
    Destination,
    Flavor,
    InstanceGroup,
    NetworkRequestList,
    RequestGroup,
    RequestLevelParams,
    SchedulerLimits,
    SchedulerRetries,
    SecurityGroupList,
)


def _flavor_size(name: str, doc: str) -> Any:
    """A property that reads *name* of the flavor; 0 when unset, InvalidRequest without flavor."""

    def read(spec: RequestSpec) -> int:
        if spec.flavor is None:
            raise errors.InvalidRequest(
                field="RequestSpec.flavor", reason="the request has none, and no instance_type"
            )
        return getattr(spec.flavor, name) or 0

    return property(read, doc=doc)


@register
class RequestSpec(WireObject):
    """The request; an unset field reads as null or as its documented empty value."""

    VERSION = "1.15"

    #: The scheduler's JSON options (scheduling page, section 12), on the driver's copy; not sent.
    config_options: Any = MappingProxyType({})

    FIELDS = {
        "id": Field(INT),
        "image": Field(ObjectOf(ImageMeta), nullable=True),
        "numa_topology": Field(ObjectOf(InstanceNUMATopology, plain=True), nullable=True),
        "pci_requests": Field(ObjectOf(InstancePCIRequests, plain=True), nullable=True),
        "project_id": Field(STR, nullable=True),
        "user_id": Field(STR, nullable=True, since=(1, 9)),
        "availability_zone": Field(STR, nullable=True),
        "flavor": Field(ObjectOf(Flavor)),
        "num_instances": Field(INT, default=1),
        **fields(ListOf(STR), "ignore_hosts force_hosts force_nodes", nullable=True),
        "requested_destination": Field(
            ObjectOf(Destination), nullable=True, default=None, since=(1, 6)
        ),
        "retry": Field(ObjectOf(SchedulerRetries), nullable=True),
        "limits": Field(ObjectOf(SchedulerLimits), nullable=True),
        "instance_group": Field(ObjectOf(InstanceGroup), nullable=True),
        "scheduler_hints": Field(DictOf(ListOf(STR)), nullable=True),
        "instance_uuid": Field(UUID),
        "security_groups": Field(
            ObjectOf(SecurityGroupList), unset=SecurityGroupList, since=(1, 8)
        ),
        "network_metadata": Field(
            ObjectOf(NetworkMetadata),
            unset=lambda: NetworkMetadata(physnets=set(), tunneled=False),
            since=(1, 10),
        ),
        "is_bfv": Field(BOOL, since=(1, 11)),
        "requested_resources": Field(
            ListOf(ObjectOf(RequestGroup)), nullable=True, default=None, since=(1, 12)
        ),
        "request_level_params": Field(
            ObjectOf(RequestLevelParams), unset=RequestLevelParams, since=(1, 13)
        ),
        "requested_networks": Field(
            ObjectOf(NetworkRequestList), unset=NetworkRequestList, since=(1, 14)
        ),
    }

    vcpus = _flavor_size("vcpus", "Virtual CPUs per instance.")
    memory_mb = _flavor_size("memory_mb", "Memory per instance in MB.")
    root_gb = _flavor_size("root_gb", "Root disk per instance in GB.")
    ephemeral_gb = _flavor_size("ephemeral_gb", "Ephemeral disk per instance in GB.")
    swap = _flavor_size("swap", "Swap disk per instance in MB.")

    @property
    def root_required(self) -> set[str]:
        """Traits that the root provider must have."""
        return self.request_level_params.root_required

    @property
    def root_forbidden(self) -> set[str]:
        """Traits that the root provider must not have."""
        return self.request_level_params.root_forbidden

    @property
    def same_subtree(self) -> list[list[str]]:
        """Groups of request groups that must come from one subtree of providers."""
        return self.request_level_params.same_subtree

    def get_scheduler_hint(self, name: str, default: Any = None) -> Any:
        """One hint: the only element of its list, else the list, else *default*."""
        hints = self.scheduler_hints
        if not hints or name not in hints:
            return default
        values = hints[name]
        return values[0] if len(values) == 1 else values

    def reset_forced_destinations(self) -> None:
        """Drop forced hosts and nodes, which allows any other host."""
        self.force_hosts = None
        self.force_nodes = None

    @classmethod
    def from_primitives(
        cls, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> Self:
        """Read a request given as the two legacy dicts (section 4.1).

        Raises InvalidRequest naming the part at fault.
        """
        try:
            return cls.read_fields(legacy.request_values(request_spec, filter_properties))
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    @classmethod
    def from_components(
        cls,
        context: Any,
        instance_uuid: str,
        image: Any,
        flavor: Any,
        numa_topology: Any,
        pci_requests: Any,
        filter_properties: Mapping[str, Any],
        instance_group: InstanceGroup | None,
        availability_zone: str | None,
        *,
        security_groups: SecurityGroupList | None = None,
        project_id: str | None = None,
        user_id: str | None = None,
        port_resource_requests: Iterable[RequestGroup] | None = None,
        request_level_params: RequestLevelParams | None = None,
    ) -> Self:
        """A request for one instance, by default of the context's project and user (4.7)."""
        try:
            values = {
                **legacy.filter_values(filter_properties),
                "num_instances": 1,
                "instance_uuid": instance_uuid,
                "image": legacy.image(image),
                "numa_topology": numa_topology,
                "pci_requests": pci_requests,
                "instance_group": instance_group or legacy.group(filter_properties),
                "availability_zone": availability_zone,
                "project_id": project_id or context.project_id,
                "user_id": user_id or context.user_id,
                "requested_resources": list(port_resource_requests or ()),
                "request_level_params": request_level_params or RequestLevelParams(),
            }
            given = {"flavor": legacy.flavor(flavor), "security_groups": security_groups}
            values.update((name, value) for name, value in given.items() if value is not None)
            return cls.read_fields(values)
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    def to_legacy_request_spec_dict(self) -> dict[str, Any]:
        """The legacy request dict (section 4.5)."""
        return legacy.to_request_spec(self)

    def to_legacy_filter_properties_dict(self) -> dict[str, Any]:
        """The legacy filter properties (section 4.6)."""
        return legacy.to_filter_properties(self)


@register
class Selection(WireObject):
    """One answer: a host for one instance, and its allocation request."""

    VERSION = "1.1"
    LISTS_CHANGES = True
    FIELDS = {
        "compute_node_uuid": Field(UUID),
        **fields(STR, "service_host nodename"),
        "cell_uuid": Field(UUID),
        "limits": Field(ObjectOf(SchedulerLimits), nullable=True),
        **fields(STR, "allocation_request allocation_request_version", nullable=True),
        "availability_zone": Field(STR, nullable=True, since=(1, 1)),
    }

    def to_dict(self, numa_limits_version: str | None = None) -> dict[str, Any]:
        """The reply form for callers from before this class: host, nodename, limits.

        NUMA limits become an envelope, fitted to *numa_limits_version* when one is given.
        """
        limits = self.limits.to_dict() if self.limits is not None else {}
        if "numa_topology" in limits:
            limits["numa_topology"] = to_primitive(limits["numa_topology"], numa_limits_version)
        return {"host": self.service_host, "nodename": self.nodename, "limits": limits}
