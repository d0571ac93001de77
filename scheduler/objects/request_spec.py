"""The request and the answer to it (reference page objects, sections 3 and 4)."""

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

from scheduler.objects.base import WireObject, to_plain
from scheduler.objects.fields import BadValue, Field, ObjectOf, fields, mapping, size_of_flavor
from scheduler.objects.image import ImageMeta
from scheduler.objects.instance import Instance, InstancePCIRequests
from scheduler.objects.numa import InstanceNUMATopology, NetworkMetadata, NUMATopologyLimits
from scheduler.objects.request_parts import (
    Destination,
    Flavor,
    InstanceGroup,
    NetworkRequestList,
    RequestGroup,
    RequestLevelParams,
    SchedulerRetries,
    SecurityGroupList,
)

_TEXTS = Field(list[str])
_FROM_INSTANCE = ("numa_topology", "pci_requests", "project_id", "user_id", "availability_zone")
_FLAVOR_SIZES = ("root_gb", "ephemeral_gb", "memory_mb", "vcpus")
_HOST_LISTS = ("ignore_hosts", "force_hosts", "force_nodes")


class SchedulerLimits(WireObject):
    """The limits of the chosen host, as the filters decided; sizes in MB and GB.

    Read from a dict missing keys become null, and floats are cut to ints.
    """

    VERSION = "1.0"
    LISTS_CHANGES = True
    DICT_FILLS_DEFAULTS = True
    FIELDS = {
        "numa_topology": Field(
            ObjectOf(NUMATopologyLimits, plain=True), nullable=True, default=None
        ),
        **fields(int, "vcpu disk_gb memory_mb", nullable=True, default=None),
    }

    def to_dict(self) -> dict[str, Any]:
        """The limits that are not null; ``numa_topology`` stays an object."""
        return {name: value for name, value in self.set_fields().items() if value is not None}


class RequestSpec(WireObject):
    """The request; an unset field reads as null or as its documented empty value."""

    VERSION = "1.15"

    #: The scheduler's JSON options (scheduling page, section 12), on the driver's copy; not sent.
    config_options: Any = MappingProxyType({})

    FIELDS = {
        "id": Field(int),
        "image": Field(ImageMeta, nullable=True),
        "numa_topology": Field(ObjectOf(InstanceNUMATopology, plain=True), nullable=True),
        "pci_requests": Field(ObjectOf(InstancePCIRequests, plain=True), nullable=True),
        "project_id": Field(str, nullable=True),
        "user_id": Field(str, nullable=True, since=(1, 9)),
        "availability_zone": Field(str, nullable=True),
        "flavor": Field(Flavor),
        "num_instances": Field(int, default=1),
        **fields(list[str], "ignore_hosts force_hosts force_nodes", nullable=True),
        "requested_destination": Field(Destination, nullable=True, default=None, since=(1, 6)),
        "retry": Field(SchedulerRetries, nullable=True),
        "limits": Field(SchedulerLimits, nullable=True),
        "instance_group": Field(InstanceGroup, nullable=True),
        "scheduler_hints": Field(dict[str, list[str]], nullable=True),
        "instance_uuid": Field(UUID),
        "security_groups": Field(SecurityGroupList, unset=SecurityGroupList, since=(1, 8)),
        "network_metadata": Field(
            NetworkMetadata,
            unset=lambda: NetworkMetadata(physnets=set(), tunneled=False),
            since=(1, 10),
        ),
        "is_bfv": Field(bool, since=(1, 11)),
        "requested_resources": Field(
            list[RequestGroup], nullable=True, default=None, since=(1, 12)
        ),
        "request_level_params": Field(RequestLevelParams, unset=RequestLevelParams, since=(1, 13)),
        "requested_networks": Field(NetworkRequestList, unset=NetworkRequestList, since=(1, 14)),
    }

    vcpus = size_of_flavor("vcpus", "Virtual CPUs per instance.")
    memory_mb = size_of_flavor("memory_mb", "Memory per instance in MB.")
    root_gb = size_of_flavor("root_gb", "Root disk per instance in GB.")
    ephemeral_gb = size_of_flavor("ephemeral_gb", "Ephemeral disk per instance in GB.")
    swap = size_of_flavor("swap", "Swap disk per instance in MB.")

    #: Traits that the root provider must and must not have; groups of request groups that must
    #: come from one subtree of providers.
    root_required = property(attrgetter("request_level_params.root_required"))
    root_forbidden = property(attrgetter("request_level_params.root_forbidden"))
    same_subtree = property(attrgetter("request_level_params.same_subtree"))

    def get_scheduler_hint(self, name: str, default: Any = None) -> Any:
        """One hint: the only element of its list, else the list, else *default*."""
        hints = self.scheduler_hints
        if not hints or name not in hints:
            return default
        values = hints[name]
        return values[0] if len(values) == 1 else values

    @classmethod
    def from_primitives(
        cls, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> Self:
        """Read a request given as the two legacy dicts (section 4.1); raises InvalidRequest."""
        try:
            return cls.read_fields(_request_values(request_spec, filter_properties))
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    def to_legacy_request_spec_dict(self) -> dict[str, Any]:
        """The legacy request dict (section 4.5); nested objects stay objects."""
        properties = {name: getattr(self, name) for name in _FROM_INSTANCE if name in self}
        if "instance_uuid" in self:
            properties["uuid"] = self.instance_uuid
        if "flavor" in self:
            properties.update((name, getattr(self, name)) for name in _FLAVOR_SIZES)
        return {
            "num_instances": self.num_instances,
            "image": to_plain(self.image) or {},
            "instance_properties": properties,
            "instance_type": self.flavor if "flavor" in self else {},
        }

    def to_legacy_filter_properties_dict(self) -> dict[str, Any]:
        """The legacy filter properties (section 4.6): only what is set and not empty."""
        hints = self.scheduler_hints or {}
        properties = {
            **{name: getattr(self, name) for name in _HOST_LISTS},
            "retry": self.retry.to_dict() if self.retry else None,
            "scheduler_hints": {name: self.get_scheduler_hint(name) for name in hints},
            "requested_destination": self.requested_destination,
        }
        found = {name: value for name, value in properties.items() if value}
        if self.limits:
            found["limits"] = self.limits.to_dict()
        group = self.instance_group
        if group:
            found["group_updated"] = True
            for name in ("hosts", "policies", "members"):
                found[f"group_{name}"] = set(getattr(group, name) or ())
            if group.uuid:
                found["group_uuid"] = group.uuid
        return found


class Selection(WireObject):
    """One answer: a host for one instance, and its allocation request."""

    VERSION = "1.1"
    LISTS_CHANGES = True
    FIELDS = {
        "compute_node_uuid": Field(UUID),
        **fields(str, "service_host nodename"),
        "cell_uuid": Field(UUID),
        "limits": Field(SchedulerLimits, nullable=True),
        **fields(str, "allocation_request allocation_request_version", nullable=True),
        "availability_zone": Field(str, nullable=True, since=(1, 1)),
    }

    def to_dict(self, numa_limits_version: str | None = None) -> dict[str, Any]:
        """The reply form for callers from before this class: host, nodename, limits.

        NUMA limits become an envelope, fitted to *numa_limits_version* when one is given.
        """
        limits = self.limits.to_dict() if self.limits is not None else {}
        if "numa_topology" in limits:
            limits["numa_topology"] = limits["numa_topology"].obj_to_primitive(numa_limits_version)
        return {"host": self.service_host, "nodename": self.nodename, "limits": limits}


def _request_values(
    request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a request given as the two legacy dicts (4.1); raises BadValue.

    The result has only fields that the dicts name or that have a default.
    """
    spec = mapping(request_spec, "request_spec")
    instance = spec.get("instance_properties")
    if isinstance(instance, (Instance, Mapping)):
        from_instance = {name: instance.get(name) for name in _FROM_INSTANCE}
        from_instance["instance_uuid"] = instance.get("uuid")
    else:
        from_instance = {}
    values = {
        "num_instances": spec.get("num_instances", 1),
        "image": _object("image", ImageMeta, spec.get("image")),
        "requested_resources": None,
        **from_instance,
        **_filter_values(filter_properties),
        "instance_group": _group(filter_properties),
    }
    found = _object("flavor", Flavor, spec.get("instance_type"))
    if found is not None:
        values["flavor"] = found
    return values


def _filter_values(filter_properties: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that come from the filter properties, except the group; raises BadValue."""
    properties = mapping(filter_properties, "filter_properties")
    retry, limits = properties.get("retry"), properties.get("limits")
    return {
        **{name: properties.get(name) for name in _HOST_LISTS},
        "retry": _within("retry", SchedulerRetries, retry) if retry else None,
        "limits": _within("limits", SchedulerLimits, {} if limits is None else limits),
        "scheduler_hints": _hints(properties.get("scheduler_hints", {})),
        "requested_destination": properties.get("requested_destination"),
    }


def _object(name: str, cls: type[WireObject], value: Any) -> Any:
    """An object or a dict (``{}`` is one with nothing set) as an object of *cls*, else none."""
    return _within(name, cls, value) if isinstance(value, (cls, Mapping)) else None


def _group(filter_properties: Mapping[str, Any]) -> InstanceGroup | None:
    """The server group that the filter properties describe (4.3); raises BadValue."""
    given = filter_properties.get("instance_group")
    if given:
        return given
    if filter_properties.get("group_updated") is not True:
        return None
    policies = _texts("group_policies", filter_properties.get("group_policies"))
    found = InstanceGroup(
        policies=policies,
        hosts=_texts("group_hosts", filter_properties.get("group_hosts")),
        members=_texts("group_members", filter_properties.get("group_members")),
    )
    uuid = filter_properties.get("group_uuid")
    if uuid:
        found.uuid = uuid
    return found


def _hints(value: Any) -> dict[str, list[str]] | None:
    """Scheduler hints with every value as a list of texts (4.4); raises BadValue."""
    if value is None:
        return None
    result = {}
    for name, hint in mapping(value, "scheduler_hints").items():
        path = f"scheduler_hints[{name!r}]"
        result[name] = _texts(path, hint if isinstance(hint, list) else [hint])
    return result


def _within(name: str, cls: type[WireObject], value: Any) -> Any:
    """Convert the value of field *name* unless it is an object already."""
    if isinstance(value, cls):
        return value
    try:
        return cls.read_dict(value)
    except BadValue as exc:
        raise exc.inside(name) from exc


def _texts(name: str, value: Any) -> list[str]:
    return _TEXTS.accept(name, value or [])
