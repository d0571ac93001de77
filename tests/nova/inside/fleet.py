"""Compute hosts, aggregates and instances, written and changed through Nova's own objects."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nova import objects
from nova.objects import host_mapping

from tests.nova.inside import contexts
from tests.nova.inside.demands import IMAGE, a_flavor

CPU_INFO = {
    "vendor": "Intel",
    "model": "Broadwell",
    "arch": "x86_64",
    "features": ["aes", "avx2"],
    "topology": {"cores": 8, "cells": 1, "threads": 1, "sockets": 1},
}


def add_host(cell: str, name: str, columns: Mapping[str, Any] | None = None) -> str:
    """Register a host with one node in a cell; returns the node's uuid.  See :func:`discover`.

    *columns* are fields of ComputeNode.
    """
    mapping = contexts.cell(cell)
    with contexts.inside(mapping) as targeted:
        start_service(targeted, name)
        node = objects.ComputeNode(targeted, host=name, hypervisor_hostname=name)
        set_columns(node, {**DEFAULT_COLUMNS, **(columns or {})})
        node.create()
    return str(node.uuid)


def discover() -> list[str]:
    """Map the hosts that have registered since, as ``nova-manage cell_v2 discover_hosts``."""
    return [str(each.host) for each in host_mapping.discover_hosts(contexts.admin())]


DEFAULT_COLUMNS: dict[str, Any] = {
    "vcpus": 16,
    "memory_mb": 32768,
    "local_gb": 500,
    "vcpus_used": 0,
    "memory_mb_used": 0,
    "local_gb_used": 0,
    "free_ram_mb": 32768,
    "free_disk_gb": 500,
    "disk_available_least": 500,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 7002000,
    "current_workload": 0,
    "running_vms": 0,
    "host_ip": "10.0.0.11",
    "cpu_info": json.dumps(CPU_INFO),
    "supported_instances": [["x86_64", "kvm", "hvm"]],
    "metrics": "[]",
    "stats": {"num_instances": "0", "io_workload": "0", "failed_builds": "0"},
    "cpu_allocation_ratio": 4.0,
    "ram_allocation_ratio": 1.5,
    "disk_allocation_ratio": 1.0,
}


def start_service(targeted: Any, name: str) -> None:
    """The service record of a compute host that has just sent its first heartbeat."""
    service = objects.Service(targeted, host=name, binary="nova-compute", topic="compute")
    service.create()
    service.report_count += 1
    service.save()


def set_columns(node: Any, columns: Mapping[str, Any]) -> None:
    """Set fields of a ComputeNode from plain values."""
    for name, value in columns.items():
        if name == "supported_instances":
            node.supported_hv_specs = [objects.HVSpec.from_list(each) for each in value]
        else:
            setattr(node, name, value)


def change_host(name: str, columns: Mapping[str, Any]) -> None:
    """Save changed fields of a host's node."""
    with contexts.inside(contexts.cell_of(name)) as targeted:
        node = node_of(targeted, name)
        set_columns(node, columns)
        node.save()


def node_of(targeted: Any, host: str) -> Any:
    return objects.ComputeNode.get_first_node_by_host_for_old_compat(targeted, host)


def change_service(name: str, fields: Mapping[str, Any]) -> None:
    """Save changed fields of a host's service, as the API does for ``nova service-disable``."""
    with contexts.inside(contexts.cell_of(name)) as targeted:
        service = objects.Service.get_by_compute_host(targeted, name)
        for field, value in fields.items():
            setattr(service, field, value)
        service.save()


def remove_host(name: str) -> None:
    """Delete the service, which deletes the node, too, and the mapping, as the API does."""
    mapping = objects.HostMapping.get_by_host(contexts.admin(), name)
    with contexts.inside(mapping.cell_mapping) as targeted:
        objects.Service.get_by_compute_host(targeted, name).destroy()
    mapping.destroy()


def add_aggregate(name: str, metadata: Mapping[str, str], hosts: Sequence[str]) -> int:
    aggregate = objects.Aggregate(contexts.admin(), name=name, metadata=dict(metadata))
    aggregate.create()
    for host in hosts:
        aggregate.add_host(host)
    return int(aggregate.id)


def change_aggregate(
    number: int,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    metadata: Mapping[str, str | None] | None = None,
) -> None:
    """Add and remove hosts, and set metadata (null removes a key)."""
    aggregate = objects.Aggregate.get_by_id(contexts.admin(), number)
    for host in add:
        aggregate.add_host(host)
    for host in remove:
        aggregate.delete_host(host)
    if metadata:
        aggregate.update_metadata(dict(metadata))


def remove_aggregate(number: int) -> None:
    aggregate = objects.Aggregate.get_by_id(contexts.admin(), number)
    for host in list(aggregate.hosts):
        aggregate.delete_host(host)
    aggregate.destroy()


def add_group(policy: str) -> str:
    """Create a server group; returns its uuid."""
    group = objects.InstanceGroup(
        contexts.admin(),
        name=policy,
        user_id=contexts.USER,
        project_id=contexts.PROJECT,
        policy=policy,
        rules={},
    )
    group.create()
    return str(group.uuid)


def add_instance(
    host: str,
    uuid: str,
    flavor: Mapping[str, Any] | None = None,
    group: str | None = None,
    vm_state: str = "active",
    task_state: str | None = None,
) -> None:
    """Put an instance on a host; the host's own numbers are the caller's to change."""
    mapping = contexts.cell_of(host)
    with contexts.inside(mapping) as targeted:
        instance = objects.Instance(
            targeted,
            uuid=uuid,
            user_id=contexts.USER,
            project_id=contexts.PROJECT,
            host=host,
            node=host,
            compute_id=node_of(targeted, host).id,
            vm_state=vm_state,
            task_state=task_state,
            image_ref=IMAGE,
            system_metadata={},
            flavor=a_flavor(flavor or {}),
        )
        for name in ("memory_mb", "vcpus", "root_gb", "ephemeral_gb"):
            setattr(instance, name, getattr(instance.flavor, name))
        instance.create()
    objects.InstanceMapping(
        contexts.admin(),
        instance_uuid=uuid,
        project_id=contexts.PROJECT,
        user_id=contexts.USER,
        cell_mapping=mapping,
        queued_for_delete=False,
    ).create()
    if group:
        objects.InstanceGroup.add_members(contexts.admin(), group, [uuid])


def start_instance(uuid: str) -> None:
    """Let an instance that was being built run."""
    mapping = objects.InstanceMapping.get_by_instance_uuid(contexts.admin(), uuid)
    with contexts.inside(mapping.cell_mapping) as targeted:
        instance = objects.Instance.get_by_uuid(targeted, uuid)
        instance.vm_state, instance.task_state = "active", None
        instance.save()


def remove_instance(uuid: str) -> None:
    mapping = objects.InstanceMapping.get_by_instance_uuid(contexts.admin(), uuid)
    with contexts.inside(mapping.cell_mapping) as targeted:
        objects.Instance.get_by_uuid(targeted, uuid).destroy()


def cell_uuid(name: str) -> str:
    return str(contexts.cell(name).uuid)
