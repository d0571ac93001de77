"""What the tests of the conductor stub are made of."""

import json
import pathlib
from typing import Any

from scheduler import objects

WIRE = pathlib.Path(__file__).parents[2] / "data" / "wire"
UUIDS = [f"f4a0f8c0-0000-4000-8000-00000000000{number}" for number in range(1, 10)]


def wire(name: str) -> dict[str, Any]:
    """The arguments of a recorded message."""
    (path,) = WIRE.glob(f"{name}.*")
    return json.loads(path.read_text())["message"]["args"]


def recorded_instance() -> objects.Instance:
    """The instance of the recorded messages, as it waits for its first host."""
    instance = objects.from_primitive(wire("conductor-build_instances-reschedule")["instances"][0])
    instance.host = instance.node = instance.launched_on = None
    instance.task_state = "scheduling"
    return instance


def flavor(**changes: Any) -> objects.Flavor:
    sizes = {"memory_mb": 2048, "vcpus": 1, "root_gb": 20, "ephemeral_gb": 0, "swap": 0}
    more = {"rxtx_factor": 1.0, "vcpu_weight": 0, "disabled": False, "is_public": True}
    values = {"id": 1, "name": "m1.small", "flavorid": "2", "extra_specs": {}, **sizes, **more}
    return objects.Flavor(**{**values, **changes})


def instance(number: int = 0, **changes: Any) -> objects.Instance:
    made = flavor()
    values = {
        "uuid": UUIDS[number],
        "user_id": "user",
        "project_id": "project",
        "display_name": f"vm-{number}",
        "vm_state": "building",
        "task_state": "scheduling",
        "availability_zone": None,
        "memory_mb": 2048,
        "vcpus": 1,
        "root_gb": 20,
        "ephemeral_gb": 0,
        "instance_type_id": made.id,
        "flavor": made,
        "metadata": {},
        "system_metadata": {},
    }
    return objects.Instance(**{**values, **changes})


def selection(host: str = "cmp1", **changes: Any) -> objects.Selection:
    """A host that needs no booking."""
    values = {
        "service_host": host,
        "nodename": host,
        "availability_zone": "az-of-" + host,
        "compute_node_uuid": "c0000001-aaaa-4bbb-8ccc-000000000001",
        "cell_uuid": "d3b0b9ab-43c5-4d6e-8f26-5b1de4a2b8e1",
        "limits": objects.SchedulerLimits.from_dict({"memory_mb": 4096}),
        "allocation_request": "null",
        "allocation_request_version": None,
    }
    return objects.Selection(**{**values, **changes})
