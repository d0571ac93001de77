"""Requests in the dict forms of older releases, both ways (reference page objects, section 4).

Reading returns values for the fields of RequestSpec; writing takes any object with those fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.objects.base import WireObject, described
from scheduler.objects.fields import CONVERSION_ERRORS, STR, BadValue, ListOf, located
from scheduler.objects.image import ImageMeta
from scheduler.objects.instance import Instance
from scheduler.objects.nested import to_plain
from scheduler.objects.request_parts import (
    Flavor,
    InstanceGroup,
    SchedulerLimits,
    SchedulerRetries,
)

_TEXTS = ListOf(STR)
_FROM_INSTANCE = ("numa_topology", "pci_requests", "project_id", "user_id", "availability_zone")
_FLAVOR_SIZES = ("root_gb", "ephemeral_gb", "memory_mb", "vcpus")
_HOST_LISTS = ("ignore_hosts", "force_hosts", "force_nodes")


def request_values(
    request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a request given as the two legacy dicts (4.1); raises BadValue.

    The result has only fields that the dicts name or that have a default.
    """
    spec = _mapping("request_spec", request_spec)
    values = {
        "num_instances": spec.get("num_instances", 1),
        "image": image(spec.get("image")),
        "requested_resources": None,
        **_instance_values(spec.get("instance_properties")),
        **filter_values(filter_properties),
        "instance_group": group(filter_properties),
    }
    found = flavor(spec.get("instance_type"))
    if found is not None:
        values["flavor"] = found
    return values


def filter_values(filter_properties: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that come from the filter properties, except the group; raises BadValue."""
    properties = _mapping("filter_properties", filter_properties)
    retry = properties.get("retry")
    return {
        **{name: properties.get(name) for name in _HOST_LISTS},
        "retry": _within("retry", SchedulerRetries, retry) if retry else None,
        "limits": _within("limits", SchedulerLimits, properties.get("limits")),
        "scheduler_hints": hints(properties.get("scheduler_hints", {})),
        "requested_destination": properties.get("requested_destination"),
    }


def image(value: Any) -> ImageMeta | None:
    """The image: an object, a dict (``{}`` is an image without properties), else none."""
    if not isinstance(value, (ImageMeta, Mapping)):
        return None
    return _within("image", ImageMeta, value)


def flavor(value: Any) -> Flavor | None:
    """The flavor: an object, a dict (``{}`` is a flavor with nothing set), else none."""
    if not isinstance(value, (Flavor, Mapping)):
        return None
    return _within("flavor", Flavor, value)


def group(filter_properties: Mapping[str, Any]) -> InstanceGroup | None:
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


def hints(value: Any) -> dict[str, list[str]] | None:
    """Scheduler hints with every value as a list of texts (4.4); raises BadValue."""
    if value is None:
        return None
    result = {}
    for name, hint in _mapping("scheduler_hints", value).items():
        path = f"scheduler_hints[{name!r}]"
        result[name] = _texts(path, hint if isinstance(hint, list) else [hint])
    return result


def to_request_spec(spec: Any) -> dict[str, Any]:
    """The legacy request dict of *spec* (4.5); nested objects stay objects."""
    properties = {name: getattr(spec, name) for name in _FROM_INSTANCE if spec.is_set(name)}
    if spec.is_set("instance_uuid"):
        properties["uuid"] = spec.instance_uuid
    if spec.is_set("flavor"):
        properties.update((name, getattr(spec, name)) for name in _FLAVOR_SIZES)
    return {
        "num_instances": spec.num_instances,
        "image": to_plain(spec.image) or {},
        "instance_properties": properties,
        "instance_type": spec.flavor if spec.is_set("flavor") else {},
    }


def to_filter_properties(spec: Any) -> dict[str, Any]:
    """The legacy filter properties of *spec* (4.6): only what is set and not empty."""
    properties: dict[str, Any] = {
        name: getattr(spec, name) for name in _HOST_LISTS if getattr(spec, name)
    }
    retry = spec.retry.to_dict() if spec.retry else None
    if retry:
        properties["retry"] = retry
    if spec.limits:
        properties["limits"] = spec.limits.to_dict()
    if spec.instance_group:
        properties.update(_group_properties(spec.instance_group))
    if spec.scheduler_hints:
        properties["scheduler_hints"] = {
            name: spec.get_scheduler_hint(name) for name in spec.scheduler_hints
        }
    if spec.requested_destination:
        properties["requested_destination"] = spec.requested_destination
    return properties


def _group_properties(found: InstanceGroup) -> dict[str, Any]:
    properties = {
        "group_updated": True,
        "group_hosts": set(found.hosts or ()),
        "group_policies": set(found.policies or ()),
        "group_members": set(found.members or ()),
    }
    if found.uuid:
        properties["group_uuid"] = found.uuid
    return properties


def _instance_values(instance: Any) -> dict[str, Any]:
    if isinstance(instance, (Instance, Mapping)):
        values = {name: instance.get(name) for name in _FROM_INSTANCE}
        return {**values, "instance_uuid": instance.get("uuid")}
    return {}


def _within(name: str, cls: type[WireObject], value: Any) -> Any:
    """Convert the value of field *name* unless it is an object already."""
    if isinstance(value, cls):
        return value
    try:
        return cls.read_dict(value)
    except BadValue as exc:
        raise located(name, exc) from exc


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue(f"a mapping is needed, not {described(value)}", name)
    return value


def _texts(name: str, value: Any) -> list[str]:
    try:
        return _TEXTS.convert(value or [])
    except CONVERSION_ERRORS as exc:
        raise located(name, exc) from exc
