"""Requests to measure with: each kind is a function of the request's number."""

import functools
import json
import random
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.documents import PAGE_KB
from benchmarks.fleet import FleetPlan, instance_uuid
from scheduler import objects

MB_PER_GB = 1024
GROUP_MEMBERS = 20
FLAVORS = [(vcpus, vcpus * gb) for vcpus in (1, 2, 4, 8) for gb in (1, 2, 4, 8, 16)]


def request_uuid(number: int) -> str:
    """The uuid of the server that request *number* asks for."""
    low = f"{number:016x}"
    return f"00000000-0000-0006-{low[:4]}-{low[4:]}"


def a_request(number: int, **fields: Any) -> objects.RequestSpec:
    """One small server; *fields* replace those of the request, ``flavor`` those of its flavor."""
    flavor = {
        "id": 2,
        "flavorid": "2",
        "name": "m1.small",
        "memory_mb": 2048,
        "vcpus": 1,
        "root_gb": 20,
        "ephemeral_gb": 0,
        "swap": 0,
        "rxtx_factor": 1.0,
        "vcpu_weight": 0,
        "extra_specs": {},
        **fields.pop("flavor", {}),
    }
    own = request_uuid(number)
    defaults: dict[str, Any] = {
        "flavor": objects.Flavor(**flavor),
        "image": an_image(),
        "instance_uuid": own,
        "num_instances": 1,
        "project_id": f"{number % 97:032x}",
        "user_id": f"{number % 89:032x}",
        "availability_zone": None,
        "scheduler_hints": {},
        "force_hosts": None,
        "force_nodes": None,
        "ignore_hosts": None,
        "instance_group": None,
        "retry": None,
        "limits": objects.SchedulerLimits(),
        "numa_topology": None,
        "pci_requests": objects.InstancePCIRequests(instance_uuid=own, requests=[]),
        "is_bfv": False,
    }
    return objects.RequestSpec(**{**defaults, **fields})


@functools.cache
def an_image() -> objects.ImageMeta:
    """A small image that says what it needs."""
    return objects.ImageMeta(
        id=str(uuid.UUID(int=7)),
        name="debian",
        status="active",
        size=2_000_000_000,
        min_ram=0,
        min_disk=0,
        container_format="bare",
        disk_format="qcow2",
        properties=objects.ImageMetaProps(hw_architecture="x86_64"),
    )


def plain(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """The same small server each time."""
    del plan
    return a_request(number)


def flavors(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """One of twenty flavors."""
    del plan
    vcpus, memory_gb = random.Random(number).choice(FLAVORS)
    size = {"vcpus": vcpus, "memory_mb": memory_gb * MB_PER_GB, "name": f"m{vcpus}.{memory_gb}"}
    return a_request(number, flavor=size)


def distinct(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """A size that no request before it had."""
    del plan
    size = {"memory_mb": 512 + number % 30_000, "root_gb": 1 + number // 30_000 % 97}
    return a_request(number, flavor={**size, "name": f"own-{number}"})


def impossible(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """More memory than any host has."""
    del plan
    return a_request(number, flavor={"memory_mb": 1 << 30})


def _group(policy: str, number: int, plan: FleetPlan) -> objects.InstanceGroup:
    rng = random.Random(number)
    members = min(GROUP_MEMBERS, plan.hosts // 2)
    homes = rng.sample(range(plan.hosts), members)
    return objects.InstanceGroup(
        uuid=str(uuid.UUID(int=(8 << 64) + number)),
        name="group",
        policy=policy,
        members=[instance_uuid(home * plan.instances_per_host) for home in homes],
        hosts=[plan.names[home] for home in homes],
    )


def _of_group(policy: str, number: int, plan: FleetPlan) -> objects.RequestSpec:
    return a_request(number, instance_group=_group(policy, number, plan))


def zone_and_specs(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """A zone, and a flavor for hosts with fast disks."""
    del plan
    specs = {"aggregate_instance_extra_specs:ssd": "true"}
    return a_request(number, availability_zone="az-2", flavor={"extra_specs": specs})


def json_query(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """A query of the user's own over memory, disk and processors."""
    del plan
    query = [
        "and",
        [">=", "$free_ram_mb", 4096 + number % 7],
        [">=", "$free_disk_mb", 50 * MB_PER_GB],
        ["or", ["<", "$num_io_ops", 8], ["<", "$vcpus_used", 16]],
    ]
    return a_request(number, scheduler_hints={"query": [json.dumps(query)]})


def pinned(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """Four dedicated processors, siblings together, and memory in huge pages, in one cell."""
    del plan
    flavor = {"vcpus": 4, "memory_mb": 4 * MB_PER_GB}
    return a_request(number, flavor=flavor, numa_topology=_guest(4, 4 * MB_PER_GB))


def first_shape(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """Pinned processors with an amount of memory that no request before it had."""
    del plan
    memory_mb = 2 * MB_PER_GB + 2 * number
    flavor = {"vcpus": 4, "memory_mb": memory_mb, "name": f"pinned-{number}"}
    return a_request(number, flavor=flavor, numa_topology=_guest(4, memory_mb))


def new_group(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """Servers of an anti-affinity group that has no members yet."""
    del plan
    group = objects.InstanceGroup(
        uuid=str(uuid.UUID(int=(7 << 64) + number)),
        name="group",
        policy="anti-affinity",
        members=[],
        hosts=[],
    )
    return a_request(number, instance_group=group)


def devices(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """The same, and a network function on the cell where the processors are."""
    del plan
    own = request_uuid(number)
    wanted = objects.InstancePCIRequest(
        count=1,
        spec=[{"vendor_id": "8086", "product_id": "154c"}],
        alias_name="vf",
        numa_policy="required",
        request_id=str(uuid.UUID(int=(9 << 64) + number)),
    )
    return a_request(
        number,
        flavor={"vcpus": 4, "memory_mb": 4 * MB_PER_GB},
        numa_topology=_guest(4, 4 * MB_PER_GB),
        pci_requests=objects.InstancePCIRequests(instance_uuid=own, requests=[wanted]),
    )


def _guest(cpus: int, memory_mb: int) -> objects.InstanceNUMATopology:
    cell = objects.InstanceNUMACell(
        id=0,
        cpuset=set(),
        pcpuset=set(range(cpus)),
        memory=memory_mb,
        pagesize=PAGE_KB,
        cpu_policy="dedicated",
        cpu_thread_policy="prefer",
    )
    return objects.InstanceNUMATopology(cells=[cell])


def rare_trait(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """A trait that one host in twenty has."""
    del plan
    return a_request(number, flavor={"extra_specs": {"trait:CUSTOM_RARE": "required"}})


def nested_devices(number: int, plan: FleetPlan) -> objects.RequestSpec:
    """Eight devices that each have a provider."""
    del plan
    wanted = {f"resources{device}:CUSTOM_DEVICE": "1" for device in range(1, 9)}
    return a_request(number, flavor={"extra_specs": {**wanted, "group_policy": "none"}})


Kind = Callable[[int, FleetPlan], objects.RequestSpec]

#: Kinds of which no two requests are alike, in all rounds.
NEVER_ALIKE = frozenset({"distinct", "first-shape"})
KINDS: Mapping[str, Kind] = {
    "plain": plain,
    "flavors": flavors,
    "distinct": distinct,
    "impossible": impossible,
    "anti-affinity": functools.partial(_of_group, "anti-affinity"),
    "affinity": functools.partial(_of_group, "affinity"),
    "soft-anti-affinity": functools.partial(_of_group, "soft-anti-affinity"),
    "soft-affinity": functools.partial(_of_group, "soft-affinity"),
    "zone-and-specs": zone_and_specs,
    "json-query": json_query,
    "new-group": new_group,
    "pinned": pinned,
    "first-shape": first_shape,
    "devices": devices,
    "rare-trait": rare_trait,
    "nested-devices": nested_devices,
}
