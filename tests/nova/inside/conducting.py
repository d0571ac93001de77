"""Nova's own conductor: servers are booted with it as the API would have asked."""

import copy
from collections.abc import Mapping
from typing import Any

from nova import objects
from nova.conductor import manager

from tests.nova.inside import contexts
from tests.nova.inside.demands import IMAGE, a_request


def all_cells_on(bus: str) -> None:
    """Let all cells be on one bus, which ``nova-manage`` does not offer.

    Before anything else is done with the cells: Nova remembers their buses.
    """
    for mapping in objects.CellMappingList.get_all(contexts.admin()):
        if not mapping.is_cell0():
            mapping.transport_url = bus
            mapping.save()


def boot(demand: Mapping[str, Any]) -> None:
    """Call ``schedule_and_build_instances`` with what the API has written before."""
    context = contexts.tenant()
    request = a_request(demand)
    requests = []
    for uuid in demand["uuids"]:
        each = copy.deepcopy(request)
        each.instance_uuid = uuid
        each.create()
        requests.append(each)
    conductor = manager.ComputeTaskManager()
    conductor.schedule_and_build_instances(
        context,
        build_requests=[write_build_request(context, each) for each in requests],
        request_specs=requests,
        image={"id": IMAGE, "properties": {}},
        admin_password="secret",
        injected_files=[],
        requested_networks=None,
        block_device_mapping=objects.BlockDeviceMappingList(objects=[]),
        tags=[],
    )


def write_build_request(context: Any, request: Any) -> Any:
    """The rows by which the API remembers a server that has no host yet."""
    instance = unborn_instance(context, request)
    build_request = objects.BuildRequest(
        context,
        instance=instance,
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        block_device_mappings=objects.BlockDeviceMappingList(objects=[]),
        tags=objects.TagList(objects=[]),
    )
    build_request.create()
    objects.InstanceMapping(
        context,
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        user_id=instance.user_id,
        cell_mapping=None,
        queued_for_delete=False,
    ).create()
    return build_request


def unborn_instance(context: Any, request: Any) -> Any:
    """The instance as it is while it has no host."""
    instance = objects.Instance(
        context,
        uuid=request.instance_uuid,
        user_id=contexts.USER,
        project_id=contexts.PROJECT,
        vm_state="building",
        task_state="scheduling",
        image_ref=IMAGE,
        system_metadata={},
        metadata={},
        flavor=request.flavor,
        numa_topology=request.numa_topology,
        pci_requests=request.pci_requests,
        security_groups=objects.SecurityGroupList(objects=[]),
        display_name="server",
        access_ip_v4=None,
        access_ip_v6=None,
        hidden=False,
    )
    for name in ("memory_mb", "vcpus", "root_gb", "ephemeral_gb"):
        setattr(instance, name, getattr(request.flavor, name))
    return instance


def server(uuid: str) -> dict[str, Any]:
    """What a user would see of a server."""
    mapping = objects.InstanceMapping.get_by_instance_uuid(contexts.admin(), uuid)
    with contexts.inside(mapping.cell_mapping) as targeted:
        instance = objects.Instance.get_by_uuid(targeted, uuid)
    return {
        "cell": mapping.cell_mapping.name,
        "state": instance.vm_state,
        "zone": instance.availability_zone,
    }
