"""Compute hosts as rows alone: what the scheduler reads, without anything that runs on them."""

from collections.abc import Mapping, Sequence
from typing import Any

from conductor_stub.compute import registration
from scheduler import objects
from scheduler.db import aggregates
from tests.world import databases

HOSTS = ("cmp1", "cmp2", "cmp3")
ZONE = "az-east"
ZONE_HOSTS = ("cmp1", "cmp2")
"""The fleet that the recorded messages in ``tests/data/wire`` speak of."""

MEMORY_MB = 1024 * 1024
DISK_GB = 100_000
VCPUS = 64


def install(database_url: str, hosts: Sequence[str] = HOSTS, **columns: Any) -> None:
    """Make the tables, and *hosts* with the columns given; the first two are in a zone."""
    with databases.synced(database_url) as database, database.write() as connection:
        registration.put_services(connection, hosts, 60)
        registration.put_nodes(connection, [{**node(host), **columns} for host in hosts])
        zone = {"availability_zone": ZONE}
        aggregates.create(connection, ZONE, metadata=zone, hosts=ZONE_HOSTS)


def node(host: str) -> Mapping[str, Any]:
    """The row of an empty host that is its only node."""
    return {
        "host": host,
        "hypervisor_hostname": host,
        "hypervisor_type": "QEMU",
        "hypervisor_version": 2012000,
        "supported_instances": [["x86_64", "kvm", "hvm"]],
        "vcpus": VCPUS,
        "memory_mb": MEMORY_MB,
        "free_ram_mb": MEMORY_MB,
        "local_gb": DISK_GB,
        "free_disk_gb": DISK_GB,
        "disk_available_least": DISK_GB,
        "running_vms": 0,
        "current_workload": 0,
        "cpu_allocation_ratio": 16.0,
        "ram_allocation_ratio": 1.5,
        "disk_allocation_ratio": 1.0,
    }


def a_spec(uuid: str, **fields: Any) -> objects.RequestSpec:
    """A request for one small server; *fields* change or add to it."""
    flavor = objects.Flavor(
        id=1,
        name="m1.small",
        flavorid="2",
        memory_mb=2048,
        vcpus=1,
        root_gb=20,
        ephemeral_gb=0,
        swap=0,
        extra_specs={},
    )
    defaults: dict[str, Any] = {
        "flavor": flavor,
        "instance_uuid": uuid,
        "num_instances": 1,
        "project_id": "project",
        "image": objects.ImageMeta(properties=objects.ImageMetaProps()),
        "pci_requests": objects.InstancePCIRequests(instance_uuid=uuid, requests=[]),
        "scheduler_hints": {},
    }
    return objects.RequestSpec(**{**defaults, **fields})
