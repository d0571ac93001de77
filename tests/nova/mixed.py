"""Random fleets and requests of every shape, as plain values for ``inside``."""

import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.nova.deployed import Deployed

GIB = 1024
SIZES = ((16, 8, 200), (32, 16, 400), (64, 32, 800), (128, 64, 1600))
FLAVORS: tuple[dict[str, Any], ...] = (
    {"memory_mb": 512, "vcpus": 1, "root_gb": 1},
    {"memory_mb": 2048, "vcpus": 1, "root_gb": 20},
    {"memory_mb": 4096, "vcpus": 2, "root_gb": 40},
    {"memory_mb": 8192, "vcpus": 4, "root_gb": 80, "ephemeral_gb": 10},
    {"memory_mb": 16384, "vcpus": 8, "root_gb": 160},
)
ARM_CPU = json.dumps({"vendor": "ARM", "model": "N1", "arch": "aarch64", "features": ["asimd"]})
AMD_CPU = json.dumps({"vendor": "AMD", "model": "EPYC", "arch": "x86_64", "features": ["aes"]})


@dataclass
class Fleet:
    """What a round of requests may name."""

    hosts: list[str]
    instances: list[str] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    aggregates: list[int] = field(default_factory=list)


def numa_cells(vcpus: int, memory_mb: int, threads: bool) -> list[dict[str, Any]]:
    """Two cells; a quarter of the CPUs is shared, the rest is for pinning."""
    half, step = vcpus // 2, 2 if threads else 1
    return [
        {
            "cpus": cpus[: half // 4],
            "pcpus": cpus[half // 4 :],
            "memory_mb": memory_mb // 2,
            "siblings": [cpus[first : first + step] for first in range(0, half, step)],
            "large_pages": memory_mb // 8,
        }
        for cpus in (list(range(half)), list(range(half, 2 * half)))
    ]


def columns(number: int) -> dict[str, Any]:
    """The host of that number: sizes in turn, and some special ones."""
    gib, vcpus, disk_gb = SIZES[number % len(SIZES)]
    memory_mb = gib * GIB
    made: dict[str, Any] = {
        "memory_mb": memory_mb,
        "free_ram_mb": memory_mb - 512 * (number % 3),
        "memory_mb_used": 512 * (number % 3),
        "vcpus": vcpus,
        "local_gb": disk_gb,
        "free_disk_gb": disk_gb - number,
        "local_gb_used": number,
        "disk_available_least": disk_gb - 2 * number,
        "hypervisor_version": 7002000 + 1000 * (number % 2),
        "ram_allocation_ratio": (1.0, 1.5)[number % 2],
        "cpu_allocation_ratio": (2.0, 4.0, 16.0)[number % 3],
    }
    if number % 3 == 0:
        made["numa_cells"] = numa_cells(vcpus, memory_mb, threads=number % 2 == 0)
    if number % 6 == 0:
        made["pci_pools"] = [
            {"vendor_id": "8086", "product_id": "1520", "numa_node": node, "count": 3,
             "dev_type": "type-PCI"}
            for node in (0, 1)
        ]  # fmt: skip
    if number % 8 == 5:
        made |= {"cpu_info": ARM_CPU, "supported_instances": [["aarch64", "kvm", "hvm"]]}
    if number % 8 == 7:
        made |= {"cpu_info": AMD_CPU, "stats": {"num_instances": "29", "io_workload": "1"}}
    return made


def install(world: Deployed, name: str, count: int) -> Fleet:
    """Register *count* hosts in both cells, with aggregates, instances and groups."""
    hosts = [f"{name}h{number:02d}" for number in range(count)]
    for number, host in enumerate(hosts):
        cell = ("cell1", "cell1", "cell2")[number % 3]
        world.nova.do("fleet.add_host", cell=cell, name=host, columns=columns(number))
    world.nova.do("fleet.discover")
    world.nova.do("fleet.change_service", name=hosts[1], fields={"disabled": True})
    world.nova.do("fleet.change_service", name=hosts[2], fields={"forced_down": True})
    world.nova.do("fleet.last_seen", name=hosts[3], seconds_ago=7200)
    made = Fleet(hosts)
    for number, (metadata, some) in enumerate(
        (
            ({"availability_zone": "east"}, hosts[: count // 3]),
            ({"availability_zone": "west"}, hosts[count // 3 : count // 2]),
            ({"ssd": "true"}, hosts[::4]),
            ({"filter_tenant_id": "rich"}, hosts[-4:]),
        )
    ):
        made.aggregates.append(world.add_aggregate(f"{name}{number}", metadata, *some))
    for host in hosts[4::5]:
        made.instances.append(str(uuid.uuid4()))
        world.nova.do("fleet.add_instance", host=host, uuid=made.instances[-1])
    for policy in ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"):
        made.groups[policy] = world.nova.do("fleet.add_group", policy=policy)
    return made


def remove(world: Deployed, fleet: Fleet) -> None:
    for number in fleet.aggregates:
        world.nova.do("fleet.remove_aggregate", number=number)
    for host in fleet.hosts:
        world.nova.do("fleet.remove_host", name=host)


class Demands:
    """Requests in random order, the same for the same *seed*."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet = fleet
        self.random = random.Random(seed)

    def next(self) -> tuple[str, dict[str, Any]]:
        """Another request: the name of its shape, and the arguments of ``judge.judged``."""
        name = self.random.choice(tuple(SHAPES))
        shaped = SHAPES[name](self)
        count = shaped.pop("count", None) or self.random.choice((1, 1, 1, 1, 1, 2, 2, 3, 5))
        flavor = {**self.random.choice(FLAVORS), **shaped.pop("flavor", {})}
        flavor["extra_specs"] = {**shaped.pop("extra_specs", {})}
        uuids = [str(uuid.UUID(int=self.random.getrandbits(128), version=4)) for _ in range(count)]
        demand = {"uuids": uuids, "flavor": flavor, **shaped}
        returns_objects = self.random.random() < 0.75
        return name, {
            "demand": demand,
            "returns_objects": returns_objects,
            "alternates": returns_objects and self.random.random() < 0.7,
        }

    def some(self, values: list[str], count: int = 1) -> list[str]:
        return self.random.sample(values, min(count, len(values)))

    def query(self) -> dict[str, Any]:
        query = self.random.choice(
            (
                [">=", "$free_ram_mb", 20000],
                ["and", ["<", "$vcpus_used", 6], [">=", "$free_disk_mb", 200 * 1024]],
                ["or", ["=", "$hypervisor_type", "xen"], ["in", "$host", *self.fleet.hosts[:9]]],
                ["not", [">", "$num_instances", 0]],
            )
        )
        return {"hints": {"query": [json.dumps(query)]}}

    def numa(self) -> dict[str, Any]:
        """A guest with NUMA cells, pins or large pages."""
        specs = self.random.choice(
            (
                {"hw:numa_nodes": "1"},
                {"hw:numa_nodes": "2"},
                {"hw:cpu_policy": "dedicated"},
                {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer"},
                {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"},
                {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate"},
                {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"},
                {
                    "hw:cpu_policy": "mixed",
                    "hw:cpu_dedicated_mask": "0-1",
                    "hw:numa_nodes": "2",
                    "hw:numa_cpus.0": "0,1",
                    "hw:numa_cpus.1": "2,3",
                    "hw:numa_mem.0": "1024",
                    "hw:numa_mem.1": "1024",
                },
                {"hw:mem_page_size": "large"},
                {"hw:mem_page_size": "2MB", "hw:numa_nodes": "2"},
            )
        )
        vcpus = 4 if "hw:numa_cpus.0" in specs else self.random.choice((2, 4))
        flavor = {"memory_mb": 2048, "vcpus": vcpus, "root_gb": 10}
        return {"extra_specs": specs, "flavor": flavor}

    def devices(self) -> dict[str, Any]:
        """A guest with devices, with NUMA cells or without."""
        specs = {"pci_passthrough:alias": f"nic:{self.random.choice((1, 1, 2, 7))}"}
        if self.random.random() < 0.5:
            specs["hw:numa_nodes"] = "1"
        return {"extra_specs": specs, "count": self.random.choice((1, 1, 2))}

    def destination(self) -> dict[str, Any]:
        """A host or a cell that somebody wants."""
        host = self.random.choice(self.fleet.hosts)
        wanted = ({"host": host, "node": None}, {"host": host, "node": host}, {"cell": "cell1"})
        return {"destination": self.random.choice((*wanted, {"cell": "cell2"}))}

    def image(self) -> dict[str, Any]:
        properties = (
            {"hw_architecture": "aarch64"},
            {"hw_architecture": "x86_64"},
            {"img_hv_type": "kvm"},
            {"img_hv_type": "xen"},
            {"hw_vm_mode": "hvm"},
        )
        return {"image": self.random.choice(properties)}

    def capabilities(self) -> dict[str, Any]:
        """What the flavor asks of the host itself."""
        specs = (
            {"capabilities:cpu_info:vendor": "AMD"},
            {"capabilities:cpu_info:features": "<in> aes"},
            {"capabilities:hypervisor_version": ">= 7003000"},
            {"capabilities:free_ram_mb": ">= 30000"},
        )
        return {"extra_specs": self.random.choice(specs)}

    def impossible(self) -> dict[str, Any]:
        return self.random.choice(
            (
                {"flavor": {"memory_mb": 10**6}},
                {"flavor": {"vcpus": 1000}},
                {"zone": "nowhere"},
                {"force_hosts": ["nobody"]},
                {"ignore_hosts": list(self.fleet.hosts)},
                {"extra_specs": {"aggregate_instance_extra_specs:ssd": "false"}},
                {"image": {"hw_architecture": "ppc64"}},
                {"hints": {"query": [json.dumps(["<", "$free_ram_mb", -(10**9)])]}},
            )
        )

    def group(self) -> dict[str, Any]:
        return {"group": self.random.choice(tuple(self.fleet.groups.values()))}


SHAPES: dict[str, Callable[[Demands], dict[str, Any]]] = {
    "plain": lambda demands: {},
    "many": lambda demands: {"count": demands.random.randint(6, 20)},
    "zone": lambda demands: {"zone": demands.random.choice(("east", "west", "nova"))},
    "aggregate": lambda demands: {"extra_specs": {"aggregate_instance_extra_specs:ssd": "true"}},
    "tenant": lambda demands: {"project": demands.random.choice(("rich", "poor"))},
    "same host": lambda demands: {
        "hints": {"same_host": demands.some(demands.fleet.instances, 2)}, "count": 1},
    "different host": lambda demands: {
        "hints": {"different_host": demands.some(demands.fleet.instances, 4)}},
    "query": Demands.query,
    "group": Demands.group,
    "cells of the host": Demands.numa,
    "devices": Demands.devices,
    "image": Demands.image,
    "capabilities": Demands.capabilities,
    "forced": lambda demands: {"force_hosts": demands.some(demands.fleet.hosts)},
    "ignored": lambda demands: {"ignore_hosts": demands.some(demands.fleet.hosts, 20)},
    "destination": Demands.destination,
    "impossible": Demands.impossible,
}  # fmt: skip
