"""Payloads of versioned notifications, and the plain ones of old (reference page rpc, 13.1).

Every payload is built when it is called for, from what the objects say then, and shares nothing
with them that could change before it is sent.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from typing import Any, Final

from scheduler import errors, objects
from scheduler.objects import registry

Payload = dict[str, Any]

FLAVOR: Final = (
    "flavorid", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "name", "swap", "rxtx_factor",
    "vcpu_weight", "disabled", "is_public", "extra_specs", "projects", "description",
)  # fmt: skip
CELL: Final = (
    "id", "cpuset", "pcpuset", "cpuset_reserved", "memory", "pagesize", "cpu_pinning_raw",
    "cpu_policy", "cpu_thread_policy",
)  # fmt: skip
GROUP: Final = ("uuid", "name", "user_id", "project_id", "policies", "members", "hosts", "policy")
PCI_REQUEST: Final = ("count", "spec", "alias_name", "request_id", "numa_policy")
REQUEST: Final = (
    "instance_uuid", "project_id", "user_id", "availability_zone", "num_instances", "ignore_hosts",
    "scheduler_hints",
)  # fmt: skip
IMAGE: Final = tuple(name for name in objects.ImageMeta.FIELDS if name != "properties")


def legacy_request(spec: objects.RequestSpec) -> Payload:
    """The request as plain dicts, under the key that consumers of the unversioned form know."""
    plain: Payload = objects.to_plain(spec.to_legacy_request_spec_dict())
    return {"request_spec": plain}


def request(spec: objects.RequestSpec) -> Payload:
    """RequestSpecPayload 1.1."""
    return _envelope(
        "RequestSpecPayload",
        "1.1",
        {
            **_picked(spec, REQUEST),
            "flavor": _flavor(spec.flavor),
            "force_hosts": _first(spec.force_hosts),
            "force_nodes": _first(spec.force_nodes),
            "image": _image(spec.image),
            "instance_group": _group(spec.instance_group),
            "numa_topology": _topology(spec.numa_topology, spec.instance_uuid),
            "pci_requests": _pci_requests(spec.pci_requests, spec.instance_uuid),
            "requested_destination": _destination(spec.requested_destination),
            "retry": _retry(spec.retry),
            "security_groups": [
                each.get("uuid") or each.get("name") for each in spec.security_groups
            ],
        },
    )


def compute_task(
    instance_uuid: str, spec: objects.RequestSpec | None, state: str | None, error: BaseException
) -> Payload:
    """ComputeTaskPayload 1.0: a task of the conductor ended with *error*."""
    return _envelope(
        "ComputeTaskPayload",
        "1.0",
        {
            "instance_uuid": instance_uuid,
            "request_spec": None if spec is None else request(spec),
            "state": state,
            "reason": exception(error),
        },
    )


def exception(error: BaseException) -> Payload:
    """ExceptionPayload 1.1; module and function are those in which *error* was raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame = frames[-1][0] if frames else None
    return _envelope(
        "ExceptionPayload",
        "1.1",
        {
            "module_name": frame.f_globals.get("__name__", "unknown") if frame else "unknown",
            "function_name": frame.f_code.co_name if frame else "unknown",
            "exception": type(error).__name__,
            "exception_message": errors.message_of(error),
            "traceback": "".join(traceback.format_exception(error)),
        },
    )


def legacy_failure(
    request_spec: Mapping[str, Any],
    instance_uuid: str,
    method: str,
    error: BaseException,
    state: str = "error",
) -> Payload:
    """*method* failed and left the server in *state*.

    The form of the conductor and of Havana's scheduler.
    """
    plain: Payload = objects.to_plain(dict(request_spec))
    return {
        "request_spec": plain,
        "instance_properties": plain.get("instance_properties", {}),
        "instance_id": instance_uuid,
        "state": state,
        "method": method,
        "reason": errors.message_of(error),
    }


def _envelope(name: str, version: str, data: Payload) -> Payload:
    return {
        registry.NAME_KEY: name,
        registry.NAMESPACE_KEY: registry.NAMESPACE,
        registry.VERSION_KEY: version,
        registry.DATA_KEY: data,
    }


def _picked(obj: Any, names: Iterable[str]) -> Payload:
    """The wire form of the fields named; null where unset."""
    data = objects.to_primitive(obj)[registry.DATA_KEY]
    return {name: objects.to_plain(data.get(name)) for name in names}


def _first(values: list[str] | None) -> str | None:
    return values[0] if values else None


def _flavor(flavor: objects.Flavor | None) -> Payload | None:
    if flavor is None:
        return None
    return _envelope("FlavorPayload", "1.4", _picked(flavor, FLAVOR))


def _image(image: objects.ImageMeta | None) -> Payload | None:
    if image is None:
        return None
    properties = _picked(image.properties, image.properties.set_fields())
    return _envelope(
        "ImageMetaPayload",
        "1.0",
        {
            **_picked(image, IMAGE),
            "properties": _envelope("ImageMetaPropsPayload", "1.20", properties),
        },
    )


def _group(group: objects.InstanceGroup | None) -> Payload | None:
    if group is None:
        return None
    rules = {"rules": dict(group.get("_rules") or {})}
    return _envelope("ServerGroupPayload", "1.1", {**_picked(group, GROUP), **rules})


def _topology(topology: objects.InstanceNUMATopology | None, uuid: str | None) -> Payload | None:
    if topology is None:
        return None
    fields = _picked(topology, ("instance_uuid", "emulator_threads_policy"))
    fields["instance_uuid"] = fields["instance_uuid"] or uuid
    cells = [
        _envelope(
            "InstanceNUMACellPayload",
            "1.2",
            {**_picked(cell, CELL), "cpu_topology": objects.to_plain(cell.get("cpu_topology"))},
        )
        for cell in topology.cells
    ]
    return _envelope("InstanceNUMATopologyPayload", "1.0", {**fields, "cells": cells})


def _pci_requests(requests: objects.InstancePCIRequests | None, uuid: Any) -> Payload | None:
    if requests is None:
        return None
    asked = [
        _envelope("InstancePCIRequestPayload", "1.1", _picked(each, PCI_REQUEST))
        for each in requests.requests
    ]
    instance_uuid = requests.get("instance_uuid") or uuid  # no HTTP # nosec B113
    data = {"instance_uuid": instance_uuid, "requests": asked}
    return _envelope("InstancePCIRequestsPayload", "1.0", data)


def _destination(destination: objects.Destination | None) -> Payload | None:
    if destination is None:
        return None
    data: Payload = _picked(destination, ("host", "node"))
    cell = destination.get("cell")
    if cell is not None:
        mapping = _picked(cell, ("uuid", "name", "disabled"))
        data["cell"] = _envelope("CellMappingPayload", "2.0", mapping)
    known = {name: value for name, value in data.items() if value is not None}
    aggregates = _picked(destination, ("aggregates",))
    return _envelope("DestinationPayload", "1.0", {**known, **aggregates})


def _retry(retry: objects.SchedulerRetries | None) -> Payload | None:
    if retry is None:
        return None
    nodes = [node.hypervisor_hostname for node in retry.get("hosts") or ()]
    data = {"num_attempts": retry.get("num_attempts"), "hosts": nodes}
    return _envelope("SchedulerRetriesPayload", "1.0", data)
