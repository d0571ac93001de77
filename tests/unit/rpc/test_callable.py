"""All that anyone on the bus can call, of every program: this list is the whole of it."""

import oslo_messaging
import pytest

from conductor_stub.compute.endpoints import ComputeEndpoint
from conductor_stub.compute.endpoints import OlderEndpoint as OlderCompute
from conductor_stub.manager import BackportAPI, ComputeTaskManager
from scheduler.builds.tasks import HavanaTasks, IcehouseTasks
from scheduler.introspection.endpoint import IntrospectionEndpoint
from scheduler.manager import SchedulerManager
from scheduler.rpc import transport
from scheduler.rpc.dispatcher import BaseAPI, SchedulerEndpoint

CALLABLE = {
    SchedulerEndpoint: "select_destinations update_aggregates delete_aggregate"
    " update_instance_info delete_instance_info sync_instance_info",
    HavanaTasks: "run_instance prep_resize select_hosts select_destinations"
    " update_service_capabilities show_host_resources get_backdoor_port create_volume"
    " live_migration",
    IcehouseTasks: "run_instance prep_resize select_hosts select_destinations",
    BaseAPI: "ping get_backdoor_port",
    IntrospectionEndpoint: "worker explain state_summary state_refresh shadow_report what_if",
    ComputeTaskManager: "build_instances schedule_and_build_instances migrate_server"
    " unshelve_instance rebuild_instance",
    BackportAPI: "object_backport_versions",
    ComputeEndpoint: "build_and_run_instance terminate_instance prep_resize confirm_resize"
    " unshelve_instance rebuild_instance",
    OlderCompute: "run_instance terminate_instance",
}


def an_endpoint(kind):
    """One without anything behind it; some hang their methods up when they are made."""
    if kind in (IntrospectionEndpoint, SchedulerEndpoint):
        return kind(SchedulerManager)
    return kind.__new__(kind)


@pytest.mark.parametrize("kind", CALLABLE, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_exactly_these(kind):
    endpoint, policy = an_endpoint(kind), oslo_messaging.ExplicitRPCAccessPolicy()
    names = {*dir(endpoint), *dir(kind)}
    assert {name for name in names if policy.is_allowed(endpoint, name)} == {
        *CALLABLE[kind].split()
    }


def test_no_class_is_made_of_what_comes_back_as_an_error():
    assert transport.REBUILT_MODULES == ()
