"""Decide the examples of docs/examples/filters.yaml and weighers.yaml, as the daemon would."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context

from scheduler import conf as options
from scheduler import drivers, errors, numa, objects, pci, semantics
from scheduler.drivers.loading import host_manager_class
from scheduler.evaluation.cases import CURRENT
from scheduler.evaluation.deciding import seconds_of
from scheduler.explain.answer import answer
from scheduler.manager import SchedulerManager
from scheduler.replay.row_fleet import RowFleet
from scheduler.replay.virtual_fleet import VirtualClock

NOW = "2026-08-01T12:00:05Z"
HEARD = "2026-08-01T12:00:00Z"
UUID = "00000000-0000-4000-a000-{:012}"
HOST: dict[str, Any] = {
    "updated_at": HEARD,
    "vcpus": 8,
    "vcpus_used": 0,
    "memory_mb": 16384,
    "memory_mb_used": 512,
    "free_ram_mb": 15872,
    "local_gb": 100,
    "local_gb_used": 0,
    "free_disk_gb": 100,
    "disk_available_least": 100,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 7002000,
    "cpu_info": {},
    "supported_instances": [["x86_64", "kvm", "hvm"]],
    "stats": {},
    "cpu_allocation_ratio": 16.0,
    "ram_allocation_ratio": 1.5,
    "disk_allocation_ratio": 1.0,
}
SERVICE: dict[str, Any] = {
    "binary": "nova-compute",
    "topic": "compute",
    "disabled": False,
    "forced_down": False,
    "last_seen_up": HEARD,
    "version": 60,
}
FLAVOR: dict[str, Any] = {
    "id": 7,
    "name": "m1.small",
    "memory_mb": 2048,
    "vcpus": 1,
    "root_gb": 20,
    "ephemeral_gb": 0,
    "swap": 0,
    "extra_specs": {},
}
#: Keys of an example's host that are no column of ``compute_nodes``.
BESIDES = ("aggregates", "instances", "service", "image_properties", "cell", "numa", "pci")


def explain(
    example: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]], **parts: list[str]
) -> dict[str, Any]:
    """What ``explain --json`` says of the example's request on *hosts*, host by name.

    *parts* are ``enabled_filters`` and ``weight_classes``.
    """
    conf = _configuration(example.get("config", {}), parts)
    clock = VirtualClock(seconds_of(NOW))
    fleet = RowFleet(_fleet(hosts))
    host_manager = host_manager_class(conf)(conf, fleet, clock, CURRENT.reservations)
    manager = SchedulerManager(conf, drivers.load(conf, host_manager))
    request = _request(conf, example.get("request", {}))
    context = oslo_context.RequestContext(request_id="req-example", overwrite=False)
    with contextlib.suppress(errors.NoValidHost):
        manager.select_destinations(context, spec_obj=request)
    [record] = answer(manager, request.instance_uuid)
    return record


def _configuration(
    given: Mapping[str, Mapping[str, Any]], parts: Mapping[str, list[str]]
) -> cfg.ConfigOpts:
    conf = options.detached()
    conf.set_override("claims", "none", group="scheduler")
    for name, value in parts.items():
        conf.set_override(name, value, group="filter_scheduler")
    for group, values in given.items():
        for name, value in values.items():
            conf.set_override(name, value, group=group)
    return conf


def _fleet(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    fleet: dict[str, list[Any]] = {
        name: [] for name in ("compute_nodes", "services", "aggregates", "instances", "cells")
    }
    for number, (name, given) in enumerate(hosts.items(), 1):
        fleet["compute_nodes"].append(_node(number, name, given))
        service = {"id": number, "host": name, **SERVICE, **given.get("service", {})}
        fleet["services"].append(service)
        for metadata in given.get("aggregates", ()):
            place = len(fleet["aggregates"]) + 1
            aggregate = {"id": place, "uuid": UUID.format(place), "name": f"aggregate-{place}"}
            fleet["aggregates"].append({**aggregate, "metadata": metadata, "hosts": [name]})
        image = {f"image_{key}": text for key, text in given.get("image_properties", {}).items()}
        for uuid, flavor in given.get("instances", {}).items():
            where = {"uuid": uuid, "host": name, "node": name, "instance_type_id": flavor}
            fleet["instances"].append({**where, "system_metadata": image})
        if "cell" in given:
            fleet["cells"].append({"uuid": given["cell"], "hosts": [name]})
    return fleet


def _node(number: int, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    columns = {key: value for key, value in given.items() if key not in BESIDES}
    row = {**HOST, "hypervisor_hostname": name, **columns, "id": number, "host": name}
    row["uuid"] = UUID.format(100 + number)
    if "numa" in given:
        row["numa_topology"] = _cells(given["numa"])
    if "pci" in given:
        row["pci_stats"] = _pools(given["pci"])
    return {
        key: json.dumps(value) if isinstance(value, dict | list) else value
        for key, value in row.items()
    }


def _cells(given: Mapping[str, Any]) -> str:
    """One NUMA cell of four processors, of which some are ``pinned``."""
    cpus = {0, 1, 2, 3}
    cell = objects.NUMACell(
        id=0, cpuset=cpus, pcpuset=cpus, memory=16384, cpu_usage=len(given["pinned"]),
        memory_usage=0, pinned_cpus=set(given["pinned"]), siblings=[],
        mempages=[objects.NUMAPagesTopology(size_kb=4, total=4194304, used=0)],
    )  # fmt: skip
    return str(objects.NUMATopology(cells=[cell]).to_text())


def _pools(free: int) -> str:
    """One pool of that many free devices; none for 0."""
    pool = objects.PciDevicePool(
        vendor_id="10de", product_id="1db4", numa_node=0, count=free, tags={"dev_type": "type-PCI"}
    )
    pools = objects.PciDevicePoolList(objects=[pool] if free else [])
    return json.dumps(pools.obj_to_primitive())


def _request(conf: cfg.ConfigOpts, given: Mapping[str, Any]) -> objects.RequestSpec:
    flavor = objects.Flavor(**{**FLAVOR, **given.get("flavor", {})})
    image = objects.ImageMeta.from_dict({"properties": given.get("image", {})})
    if "image_id" in given:
        image.id = given["image_id"]
    devices = pci.requests_of_flavor(flavor, image, conf.pci.alias)
    request = objects.RequestSpec(
        flavor=flavor,
        image=image,
        num_instances=1,
        instance_uuid=UUID.format(1),
        scheduler_hints=given.get("hints"),
        availability_zone=given.get("availability_zone"),
        project_id=given.get("project_id"),
        numa_topology=numa.constraints(flavor, image, semantics.from_conf(conf).numa),
        pci_requests=devices,
    )
    if "group" in given:
        request.instance_group = objects.InstanceGroup(**{"members": [], **given["group"]})
    if "tried" in given:
        tried = [objects.ComputeNode(host=h, hypervisor_hostname=n) for h, n in given["tried"]]
        hosts = objects.ComputeNodeList(objects=tried)
        request.retry = objects.SchedulerRetries(num_attempts=1, hosts=hosts)
    if "cell" in given:
        cell = objects.CellMapping(uuid=given["cell"])
        request.requested_destination = objects.Destination(cell=cell, allow_cross_cell_move=True)
    return request
