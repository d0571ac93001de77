"""Fleets to measure on: rows of the tables, made from a plan and the same every time.

The rows have the form of ``docs/evaluate.md``: column names as in the tables, documents as text,
times as ISO texts.  Everything here is made up, in the shapes that a libvirt compute host reports.
"""

import datetime
import functools
import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import documents

#: The moment at which a fleet was reported; clocks of subjects in this process stand there.
NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
ZONES = ("az-1", "az-2", "az-3")
REPORTED_WITHIN_SECONDS = 3600

Plain = dict[str, Any]


@dataclass(frozen=True)
class FleetPlan:
    """How many hosts, of what *mix*, how much of each is used (0 to 1), with how many servers.

    Mixes: ``plain`` (three sizes, alike in everything else), ``realistic`` (the documents of
    real hosts: twenty models, statistics that no two hosts share, one host in ten with pinned
    servers) and ``numa`` (fifty distinct sets of cells and devices, in mixed states).
    """

    hosts: int
    mix: str = "plain"
    load: float = 0.4
    instances_per_host: int = 0
    seed: int = 1

    @functools.cached_property
    def names(self) -> list[str]:
        """The hosts' names, in the order of their nodes' ids."""
        return [f"compute-{number:06d}" for number in range(self.hosts)]


@functools.lru_cache(maxsize=2)
def rows(plan: FleetPlan, now: datetime.datetime = NOW) -> Plain:
    """All tables of the fleet as of *now*; not to be changed."""
    stamp = stamp_of(now)
    return {
        "compute_nodes": list(compute_nodes(plan, now)),
        "services": list(services(plan, stamp)),
        "aggregates": aggregates(plan),
        "instances": list(instances(plan, stamp)),
    }


def stamp_of(now: datetime.datetime) -> str:
    """A time as the rows hold it."""
    return now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def compute_nodes(plan: FleetPlan, now: datetime.datetime) -> Iterator[Plain]:
    """The nodes, one per host; they have last reported something new within the last hour."""
    rng = random.Random(plan.seed)
    describe = documents.MIXES[plan.mix]
    for number, host in enumerate(plan.names):
        shape = describe(number, rng, plan.load)
        used = plan.load * rng.uniform(0.5, 1.5)
        reported_at = now - datetime.timedelta(seconds=number % REPORTED_WITHIN_SECONDS)
        yield {**_usage(shape, min(used, 1.0)), **_identity(number, host, stamp_of(reported_at))}


def _identity(number: int, host: str, stamp: str) -> Plain:
    return {
        "id": number + 1,
        "uuid": str(uuid.UUID(int=(2 << 64) + number)),
        "host": host,
        "hypervisor_hostname": host,
        "host_ip": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8002002,
        "created_at": stamp,
        "updated_at": stamp,
        "mapped": 1,
    }


def _usage(shape: documents.Shape, used: float) -> Plain:
    memory_used = int(shape.memory_mb * used)
    disk_used = int(shape.local_gb * used)
    return {
        "vcpus": shape.vcpus,
        "vcpus_used": int(shape.vcpus * used * 2),
        "memory_mb": shape.memory_mb,
        "memory_mb_used": memory_used,
        "free_ram_mb": shape.memory_mb - memory_used,
        "local_gb": shape.local_gb,
        "local_gb_used": disk_used,
        "free_disk_gb": shape.local_gb - disk_used,
        "disk_available_least": shape.local_gb - disk_used,
        "running_vms": int(used * 20),
        "current_workload": 0,
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.0,
        "disk_allocation_ratio": 1.0,
        **shape.documents,
    }


def services(plan: FleetPlan, stamp: str) -> Iterator[Plain]:
    """The compute service of each host, heard from at *stamp*."""
    return (_service(number, host, stamp) for number, host in enumerate(plan.names))


def _service(number: int, host: str, stamp: str) -> Plain:
    return {
        "id": number + 1,
        "uuid": str(uuid.UUID(int=(3 << 64) + number)),
        "host": host,
        "binary": "nova-compute",
        "topic": "compute",
        "report_count": 10_000,
        "disabled": False,
        "forced_down": False,
        "version": 66,
        "created_at": stamp,
        "updated_at": stamp,
        "last_seen_up": stamp,
    }


def aggregates(plan: FleetPlan) -> list[Plain]:
    """Three zones, every host in one, and every fourth host in an aggregate with fast disks."""
    names = plan.names
    metadata: list[Mapping[str, str]] = [{"availability_zone": zone} for zone in ZONES]
    members = [names[place :: len(ZONES)] for place in range(len(ZONES))]
    return [
        {
            "id": number + 1,
            "uuid": str(uuid.UUID(int=(4 << 64) + number)),
            "name": f"aggregate-{number + 1}",
            "metadata": dict(texts),
            "hosts": hosts,
        }
        for number, (texts, hosts) in enumerate(
            zip([*metadata, {"ssd": "true"}], [*members, names[::4]], strict=True)
        )
    ]


def instance_uuid(number: int) -> str:
    """The uuid of server *number* of a fleet; the servers of a host follow each other."""
    return str(uuid.UUID(int=(5 << 64) + number))


def instances(plan: FleetPlan, stamp: str) -> Iterator[Plain]:
    """The servers that run on the hosts."""
    for number, host in enumerate(plan.names):
        for place in range(plan.instances_per_host):
            serial = number * plan.instances_per_host + place
            yield {
                "uuid": instance_uuid(serial),
                "host": host,
                "node": host,
                "project_id": f"{serial % 997:032x}",
                "user_id": f"{serial % 1009:032x}",
                "vm_state": "active",
                "created_at": stamp,
                "updated_at": stamp,
            }
