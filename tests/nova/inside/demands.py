"""Requests, built by the code with which Nova's API and conductor build them."""

from collections.abc import Mapping
from typing import Any

from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware

from tests.nova.inside import contexts

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
FLAVOR: dict[str, Any] = {
    "id": 1,
    "name": "m1.small",
    "flavorid": "2",
    "memory_mb": 2048,
    "vcpus": 1,
    "root_gb": 20,
    "ephemeral_gb": 0,
    "swap": 0,
    "rxtx_factor": 1.0,
    "vcpu_weight": 0,
    "disabled": False,
    "is_public": True,
    "extra_specs": {},
}


def a_flavor(fields: Mapping[str, Any]) -> Any:
    return objects.Flavor(**{**FLAVOR, **fields})


def a_request(demand: Mapping[str, Any]) -> Any:
    """The RequestSpec for what a test wrote down.

    Keys: ``uuids``; and if wanted ``flavor`` (fields), ``image`` (properties), ``group`` (uuid of
    a server group, whose members the instances become), ``zone``, ``hints``, ``force_hosts``.
    """
    uuids = demand["uuids"]
    flavor = a_flavor(demand.get("flavor", {}))
    image = {"id": IMAGE, "properties": demand.get("image", {})}
    request = objects.RequestSpec.from_components(
        contexts.tenant(),
        uuids[0],
        image,
        flavor,
        hardware.numa_get_constraints(flavor, objects.ImageMeta.from_dict(image)),
        pci_request.get_pci_requests_from_flavor(flavor),
        {"scheduler_hints": demand.get("hints", {}), "force_hosts": demand.get("force_hosts")},
        a_group(demand.get("group"), uuids),
        demand.get("zone"),
        security_groups=objects.SecurityGroupList(objects=[]),
    )
    request.num_instances = len(uuids)
    utils.setup_instance_group(contexts.admin(), request)
    return request


def a_group(uuid: str | None, members: list[str]) -> Any:
    """The server group, after the instances have become its members."""
    if uuid is None:
        return None
    objects.InstanceGroup.add_members(contexts.admin(), uuid, members)
    return objects.InstanceGroup.get_by_uuid(contexts.admin(), uuid)
