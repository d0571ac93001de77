"""Orders of every version."""

from __future__ import annotations

from typing import Any

import pytest

from conductor_stub.compute.endpoints import endpoints_of
from scheduler import objects
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub.compute.fleets import an_instance

SPEC = objects.RequestSpec(num_instances=1)
ORDER: dict[str, Any] = {
    "image": {},
    "filter_properties": {},
    "admin_password": None,
    "injected_files": [],
    "requested_networks": None,
    "security_groups": [],
    "block_device_mapping": objects.BlockDeviceMappingList(),
    "limits": {},
}


@pytest.mark.parametrize(
    ("version", "arguments", "end_version", "end_arguments"),
    [
        ("4.0", {"request_spec": {}}, "4.0", {"reservations": None}),
        ("4.19", {"request_spec": {}, "host_list": []}, "4.0", {}),
        ("5.0", {"request_spec": SPEC, "host_list": []}, "5.0", {}),
        ("5.11", {"request_spec": SPEC, "host_list": [], "accel_uuids": []}, "5.0", {}),
        ("6.0", {"request_spec": SPEC, "host_list": None, "accel_uuids": []}, "6.0", {}),
    ],
)
def test_every_version_is_served(fleet, version, arguments, end_version, end_arguments):
    served = {
        each.target.version.partition(".")[0]: each
        for each in endpoints_of(fleet.hosts.hosts[fleet.second])
    }
    assert sorted(served) == ["2", "3", "4", "5", "6"]
    context = RequestContext(user_id="u", project_id="p")
    instance = an_instance(fleet.database)
    order = {**ORDER, **arguments, "instance": instance, "node": fleet.second}
    served[version[0]].build_and_run_instance(context, **order)
    assert fleet.node(fleet.second).stats.get("num_vm_active") == "1"
    disks = objects.BlockDeviceMappingList()
    end = {"instance": instance, "bdms": disks, **end_arguments}
    served[end_version[0]].terminate_instance(context, **end)
    assert fleet.node(fleet.second).running_vms == 0
