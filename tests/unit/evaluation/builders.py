"""Cases for tests: say only what the test is about.

A host is enabled, just heard from, and has 8192 MB, all free, without overcommit, if not said.
"""

import json
from typing import Any

from scheduler import objects
from scheduler.evaluation.cases import Case

NOW = "2026-11-21T00:00:00Z"
EARLIER = "2026-11-20T23:59:30Z"
UUIDS = [f"00000000-0000-4000-a000-00000000000{number}" for number in range(1, 6)]


def a_node(host: str, number: int = 1, **columns: Any) -> dict[str, Any]:
    return {
        "id": number,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "host": host,
        "hypervisor_hostname": host,
        "memory_mb": 8192,
        "memory_mb_used": 0,
        "free_ram_mb": 8192,
        "local_gb": 100,
        "local_gb_used": 0,
        "free_disk_gb": 100,
        "vcpus": 8,
        "vcpus_used": 0,
        "cpu_allocation_ratio": 1.0,
        "ram_allocation_ratio": 1.0,
        "disk_allocation_ratio": 1.0,
        "stats": json.dumps({"num_instances": "0"}),
        "updated_at": EARLIER,
        **columns,
    }


def a_service(host: str, **columns: Any) -> dict[str, Any]:
    return {
        "host": host,
        "binary": "nova-compute",
        "topic": "compute",
        "disabled": False,
        "forced_down": False,
        "last_seen_up": EARLIER,
        **columns,
    }


def a_fleet(*free_ram_mb: int, **tables: Any) -> dict[str, Any]:
    """Hosts h1, h2 … with that much free memory."""
    hosts = [f"h{number}" for number in range(1, len(free_ram_mb) + 1)]
    return {
        "compute_nodes": [
            a_node(host, number, free_ram_mb=free)
            for number, (host, free) in enumerate(zip(hosts, free_ram_mb, strict=True), start=1)
        ],
        "services": [a_service(host) for host in hosts],
        "aggregates": [],
        "instances": [],
        **tables,
    }


def a_request() -> dict[str, Any]:
    """A request for 1024 MB as it travels."""
    sizes = {"memory_mb": 1024, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0, "swap": 0}
    flavor = objects.Flavor(name="m1", extra_specs={}, **sizes)
    return objects.RequestSpec(flavor=flavor, num_instances=1).obj_to_primitive()


def a_case(fleet: dict[str, Any], **content: Any) -> Case:
    """A case that asks for one instance with the RAM filter and weigher, unless told otherwise."""
    filter_scheduler = {
        "enabled_filters": ["RamFilter"],
        "weight_classes": ["nova.scheduler.weights.ram.RAMWeigher"],
        **content.pop("filter_scheduler", {}),
    }
    config = {"filter_scheduler": filter_scheduler, **content.pop("config", {})}
    if "steps" not in content and "legacy" not in content:
        content = {"request": a_request(), "instance_uuids": UUIDS[:1], **content}
    whole = {"name": "suite/d1", "semantics": "all", "now": NOW, "config": config, **content}
    return {"suite": whole["name"].partition("/")[0], **whole, "fleet": fleet}
