"""Orders of every version over the in-process bus."""

from __future__ import annotations

import contextlib
from typing import Any

import oslo_messaging as messaging
import pytest

from conductor_stub import compute_daemon
from conductor_stub.compute.endpoints import endpoints_of
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext
from scheduler.rpc.messages import RequestContextSerializer
from tests.unit.conductor_stub.compute.fleets import an_instance
from tests.waiting import wait_until

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
def test_every_version_is_served(fleet, transport, version, arguments, end_version, end_arguments):
    client = messaging.get_rpc_client(
        transport,
        messaging.Target(topic="compute", version="6.0"),
        serializer=RequestContextSerializer(),
    )
    context = RequestContext(user_id="u", project_id="p")
    instance = an_instance(fleet.database)
    with contextlib.ExitStack() as ending:
        compute_daemon.serve(transport, fleet.hosts, ending)
        client.prepare(server=fleet.second, version=version).cast(
            context,
            "build_and_run_instance",
            **ORDER,
            **arguments,
            instance=instance,
            node=fleet.second,
        )
        wait_until(lambda: fleet.node(fleet.second).stats.get("num_vm_active") == "1")
        client.prepare(server=fleet.second, version=end_version).cast(
            context,
            "terminate_instance",
            instance=instance,
            bdms=objects.BlockDeviceMappingList(),
            **end_arguments,
        )
        wait_until(lambda: fleet.node(fleet.second).running_vms == 0)


def test_an_order_to_delete_follows_the_instance(fleet, transport):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    context = RequestContext(user_id="u", project_id="p")
    with contextlib.ExitStack() as ending:
        compute_daemon.serve(transport, fleet.hosts, ending)
        fleet.hosts.hosts[fleet.second].terminate(context, instance.uuid)
        wait_until(lambda: fleet.node().running_vms == 0)
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)


def test_there_is_an_endpoint_for_every_major_version(fleet):
    served = [endpoint.target.version for endpoint in endpoints_of(fleet.hosts.hosts[fleet.first])]
    assert sorted(version.partition(".")[0] for version in served) == ["2", "3", "4", "5", "6"]
