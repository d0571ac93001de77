"""The arguments of the casts to compute hosts, as each version names and forms them.

Reference page conductor, section 8.
"""

from __future__ import annotations

from typing import Any

from conductor_stub.compute_versions import Version
from conductor_stub.records import BuildCast, RebuildCast, ResizeCast, UnshelveCast
from scheduler import objects

PORT_TUPLE_LENGTH = 4
"""How many elements the tuple of one network had in the days of tuples."""


def of_build(build: BuildCast, version: Version) -> dict[str, Any]:
    """The arguments of ``build_and_run_instance``.

    NUMA limits go as an envelope inside a plain dict, which every release from 3.40 on reads;
    before that they had a form that says more than a scheduler notes now, so none are sent.
    """
    arguments = {
        "instance": build.instance,
        "image": build.order.image,
        "request_spec": build.request_spec if version >= (5, 0) else build.legacy_spec,
        "filter_properties": _properties(build.filter_properties, version),
        "admin_password": build.order.admin_password,
        "injected_files": build.order.injected_files,
        "requested_networks": _networks(build.order.requested_networks, version),
        "security_groups": build.order.security_groups,
        "block_device_mapping": build.block_device_mapping,
        "node": build.node,
        "limits": _limits(build.limits, version),
    }
    if version >= (4, 19):
        arguments["host_list"] = build.host_list
    if version >= (5, 11):
        arguments["accel_uuids"] = build.accel_uuids
    return arguments


def of_terminate(
    instance: objects.Instance, bdms: objects.BlockDeviceMappingList, version: Version
) -> dict[str, Any]:
    """The arguments of ``terminate_instance``."""
    arguments: dict[str, Any] = {"instance": instance, "bdms": bdms}
    if version < (5, 0):
        arguments["reservations"] = None
    return arguments


def of_prep_resize(resize: ResizeCast, version: Version) -> dict[str, Any]:
    """The arguments of ``prep_resize``; ``migration`` is null: no record of it is kept here."""
    flavor: Any = resize.flavor if version >= (4, 1) else objects.to_plain(resize.flavor)
    arguments: dict[str, Any] = {
        "instance": resize.instance,
        "flavor" if version >= (6, 0) else "instance_type": flavor,
        "image": resize.image,
        "request_spec": resize.request_spec if version >= (5, 1) else resize.legacy_spec,
        "filter_properties": resize.filter_properties,
        "node": resize.node,
    }
    if version >= (4, 1):
        arguments["clean_shutdown"] = resize.clean_shutdown
    if version >= (4, 18):
        arguments["migration"] = None
    if version >= (4, 21):
        arguments["host_list"] = resize.host_list
    if version < (5, 0):
        arguments["reservations"] = None
    return arguments


def of_confirm_resize(instance: objects.Instance, version: Version) -> dict[str, Any]:
    """The arguments of ``confirm_resize``, without a record of the migration."""
    arguments: dict[str, Any] = {"instance": instance, "migration": None}
    if version < (5, 0):
        arguments["reservations"] = None
    return arguments


def of_unshelve(unshelve: UnshelveCast, version: Version) -> dict[str, Any]:
    """The arguments of ``unshelve_instance``."""
    arguments: dict[str, Any] = {
        "instance": unshelve.instance,
        "image": unshelve.image,
        "filter_properties": unshelve.filter_properties,
        "node": unshelve.node,
    }
    if version >= (5, 2):
        arguments["request_spec"] = unshelve.request_spec
    if version >= (5, 13):
        arguments["accel_uuids"] = unshelve.accel_uuids
    return arguments


def of_rebuild(rebuild: RebuildCast, version: Version) -> dict[str, Any]:
    """The arguments of ``rebuild_instance``."""
    arguments: dict[str, Any] = {
        "instance": rebuild.instance,
        **rebuild.order.arguments(),
        "migration": None,
        "scheduled_node": rebuild.node,
        "limits": rebuild.limits,
    }
    if version >= (4, 22):
        arguments["request_spec"] = rebuild.request_spec
    if version >= (5, 12):
        arguments["accel_uuids"] = []
    return arguments


def _properties(properties: dict[str, Any], version: Version) -> dict[str, Any]:
    if version >= (3, 36) or "instance_type" not in properties:
        return properties
    return {**properties, "instance_type": objects.to_plain(properties["instance_type"])}


def _networks(requested: objects.NetworkRequestList | None, version: Version) -> Any:
    if version >= (3, 33) or requested is None:
        return requested
    return requested.as_tuples(PORT_TUPLE_LENGTH)


def _limits(limits: dict[str, Any], version: Version) -> dict[str, Any]:
    if version >= (3, 40):
        return limits
    return {name: value for name, value in limits.items() if name != "numa_topology"}
