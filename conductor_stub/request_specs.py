"""The request as a legacy dict, for the scheduler's request and for old computes.

Reference page conductor, section 3.3, and page scheduling, section 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oslo_serialization import jsonutils

from scheduler import objects

FLAVOR_PREFIX = "instance_type_"
FLAVOR_COLUMNS = (
    "id",
    "name",
    "memory_mb",
    "vcpus",
    "root_gb",
    "ephemeral_gb",
    "flavorid",
    "swap",
    "rxtx_factor",
    "vcpu_weight",
)
NUMA_EXTRA_SPECS = ("hw:numa_cpus.", "hw:numa_mem.")


def legacy_spec(
    image: dict[str, Any] | None,
    instances: Sequence[objects.Instance],
    request_spec: objects.RequestSpec | dict[str, Any] | None,
) -> dict[str, Any]:
    """The dict form of *request_spec*, or of a request made from image and instances."""
    if request_spec is None:
        return build_request_spec(image, instances)
    if isinstance(request_spec, dict):  # what a compute was given at 4.19 comes back like this
        return request_spec
    return legacy_spec_of(request_spec)


def legacy_spec_of(request_spec: objects.RequestSpec) -> dict[str, Any]:
    """The dict form of *request_spec*, in plain values."""
    legacy: dict[str, Any] = plain(request_spec.to_legacy_request_spec_dict())
    return legacy


def build_request_spec(
    image: dict[str, Any] | None, instances: Sequence[objects.Instance]
) -> dict[str, Any]:
    """A request for as many servers as *instances*, with the properties of the first one."""
    first = instances[0]
    properties = plain(first)
    properties["system_metadata"] = {
        **properties.get("system_metadata", {}),
        **flavor_copies(first.flavor),
    }
    return {
        "image": plain(image or {}),
        "instance_properties": properties,
        "instance_type": plain(first.flavor),
        "num_instances": len(instances),
    }


def flavor_copies(flavor: objects.Flavor | None) -> dict[str, Any]:
    """The flavor as the keys that old releases keep in an instance's system metadata.

    A flavor that lacks a column ends the copy there, silently, as those releases do.
    """
    copies: dict[str, Any] = {}
    if flavor is None:
        return copies
    for column in FLAVOR_COLUMNS:
        if not flavor.is_set(column):
            return copies
        copies[FLAVOR_PREFIX + column] = getattr(flavor, column)
    for key, value in flavor.extra_specs.items():
        if key.startswith(NUMA_EXTRA_SPECS):
            copies[f"{FLAVOR_PREFIX}extra_{key}"] = value
    return copies


def plain(value: Any) -> Any:
    """*value* as plain JSON values: objects become dicts of their fields, datetimes text."""
    return jsonutils.to_primitive(objects.to_plain(value))
