"""Payloads in both forms (page rpc, 13.1), which share nothing that may change."""

import traceback
from collections.abc import Callable, Iterable, Mapping
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
    uuid, groups = spec.instance_uuid, spec.security_groups

    def part(name: str, make: Callable[[Any], Payload]) -> Payload | None:
        value = getattr(spec, name)
        return None if value is None else make(value)

    return _payload(
        "RequestSpecPayload",
        "1.1",
        spec,
        REQUEST,
        flavor=part("flavor", lambda it: _payload("FlavorPayload", "1.4", it, FLAVOR)),
        force_hosts=(spec.force_hosts or [None])[0],
        force_nodes=(spec.force_nodes or [None])[0],
        image=part("image", _image),
        instance_group=part("instance_group", _group),
        numa_topology=part("numa_topology", lambda it: _topology(it, uuid)),
        pci_requests=part("pci_requests", lambda it: _pci_requests(it, uuid)),
        requested_destination=part("requested_destination", _destination),
        retry=part("retry", _retry),
        security_groups=[each.get("uuid") or each.get("name") for each in groups],
    )


def compute_task(
    instance_uuid: str, spec: objects.RequestSpec | None, state: str | None, error: BaseException
) -> Payload:
    """ComputeTaskPayload 1.0: a task of the conductor ended with *error*."""
    data = {
        "instance_uuid": instance_uuid,
        "request_spec": None if spec is None else request(spec),
        "state": state,
        "reason": exception(error),
    }
    return _envelope("ComputeTaskPayload", "1.0", data)


def exception(error: BaseException) -> Payload:
    """ExceptionPayload 1.1; module and function are those in which *error* was raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame = frames[-1][0] if frames else None
    data = {
        "module_name": frame.f_globals.get("__name__", "unknown") if frame else "unknown",
        "function_name": frame.f_code.co_name if frame else "unknown",
        "exception": type(error).__name__,
        "exception_message": errors.message_of(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
    return _envelope("ExceptionPayload", "1.1", data)


def legacy_failure(
    request_spec: Mapping[str, Any],
    instance_uuid: str,
    method: str,
    error: BaseException,
    state: str = "error",
) -> Payload:
    """*method* failed and left the server in *state*: the conductor's and Havana's form."""
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


def _payload(name: str, version: str, obj: Any, names: Iterable[str], **more: Any) -> Payload:
    """The fields *names* of *obj*, null where unset, and *more*."""
    return _envelope(name, version, {**_picked(obj, names), **more})


def _picked(obj: Any, names: Iterable[str]) -> Payload:
    """The wire form of the fields named; null where unset."""
    data = objects.to_primitive(obj)[registry.DATA_KEY]
    return {name: objects.to_plain(data.get(name)) for name in names}


def _image(image: objects.ImageMeta) -> Payload:
    properties, names = image.properties, image.properties.set_fields()
    found = _payload("ImageMetaPropsPayload", "1.20", properties, names)
    return _payload("ImageMetaPayload", "1.0", image, IMAGE, properties=found)


def _group(group: objects.InstanceGroup) -> Payload:
    rules = dict(group.get("_rules") or {})
    return _payload("ServerGroupPayload", "1.1", group, GROUP, rules=rules)


def _topology(topology: objects.InstanceNUMATopology, uuid: str | None) -> Payload:
    cells = []
    for cell in topology.cells:
        shape = objects.to_plain(cell.get("cpu_topology"))
        cells.append(_payload("InstanceNUMACellPayload", "1.2", cell, CELL, cpu_topology=shape))
    name, own = "InstanceNUMATopologyPayload", topology.get("instance_uuid") or uuid
    policy = ("emulator_threads_policy",)
    return _payload(name, "1.0", topology, policy, instance_uuid=own, cells=cells)


def _pci_requests(requests: objects.InstancePCIRequests, uuid: Any) -> Payload:
    name = "InstancePCIRequestPayload"
    asked = [_payload(name, "1.1", each, PCI_REQUEST) for each in requests.requests]
    instance_uuid = requests.get("instance_uuid") or uuid  # no HTTP # nosec B113
    data = {"instance_uuid": instance_uuid, "requests": asked}
    return _envelope("InstancePCIRequestsPayload", "1.0", data)


def _destination(destination: objects.Destination) -> Payload:
    data = _picked(destination, ("host", "node", "aggregates"))
    cell = destination.get("cell")
    if cell is not None:
        names = ("uuid", "name", "disabled")
        data["cell"] = _payload("CellMappingPayload", "2.0", cell, names)
    known = {k: value for k, value in data.items() if value is not None or k == "aggregates"}
    return _envelope("DestinationPayload", "1.0", known)


def _retry(retry: objects.SchedulerRetries) -> Payload:
    nodes = [node.hypervisor_hostname for node in retry.get("hosts") or ()]
    data = {"num_attempts": retry.get("num_attempts"), "hosts": nodes}
    return _envelope("SchedulerRetriesPayload", "1.0", data)
