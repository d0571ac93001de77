"""Compute hosts on the in-process bus: orders in, rows and messages out."""

from __future__ import annotations

import contextlib
import datetime
import random
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import oslo_messaging as messaging
import pytest
from oslo_config import cfg

from conductor_stub.compute import profiles, service
from conductor_stub.compute.builds import BuildSettings
from conductor_stub.compute.endpoints import ComputeEndpoint, endpoints_of
from conductor_stub.compute.hosts import Clients, ComputeHosts
from scheduler import conf as project_options
from scheduler import errors, objects
from scheduler.db import aggregates, compute_nodes, instances, mappings, services
from scheduler.db.database import Database
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer
from scheduler.rpc.server import build_server
from tests.unit.conductor_stub.compute.conftest import an_instance
from tests.unit.conductor_stub.compute.ends import ConductorEnd, SchedulerEnd
from tests.waiting import wait_until

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
PROFILE = profiles.Profile(
    (
        profiles.HostKind(
            "k",
            vcpus=4,
            memory_mb=4096,
            local_gb=100,
            availability_zones=("z1", "z2"),
            aggregates={"fast": {"ssd": "true"}},
        ),
    )
)
BIG = 10**6


@pytest.fixture(scope="module")
def conf() -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, which the RPC library insists on: the in-process bus."""
    project_options.register_all(cfg.CONF)
    cfg.CONF([], project="nova", default_config_files=[], default_config_dirs=[])
    yield cfg.CONF
    cfg.CONF.reset()


@pytest.fixture(scope="module")
def transport(conf: cfg.ConfigOpts) -> Iterator[messaging.Transport]:
    transport = bus.get_transport(conf)
    yield transport
    transport.cleanup()


@pytest.fixture(scope="module")
def _servers(transport: messaging.Transport) -> Iterator[tuple[ConductorEnd, SchedulerEnd]]:
    ends = ConductorEnd(), SchedulerEnd()
    servers = [
        build_server(transport, topic, "here", [end])
        for topic, end in zip(("conductor", "scheduler"), ends, strict=True)
    ]
    for server in servers:
        server.start()
    yield ends
    for server in servers:
        server.stop()
    for server in servers:
        server.wait()


@pytest.fixture
def conductor(_servers: Any) -> ConductorEnd:
    return _servers[0]


@pytest.fixture
def scheduler(_servers: Any) -> SchedulerEnd:
    return _servers[1]


class Fleet:
    """Two hosts of 4 vCPUs, 4096 MB and 100 GB, and how orders reach them."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database, transport: Any) -> None:
        self.database = database
        self.conf = conf
        self.transport = transport
        self.prefix = uuid.uuid4().hex[:8]  # messages of earlier tests may still be on their way
        self.first, self.second = f"{self.prefix}-01", f"{self.prefix}-02"
        self.hosts = self.make()

    def make(self, pause: Any = None, **settings: Any) -> ComputeHosts:
        """The hosts in another setting; they are the same rows."""
        return ComputeHosts(
            self.conf,
            self.database,
            Clients.over(self.transport, self.conf),
            PROFILE.plan(2, self.prefix),
            BuildSettings(**settings),
            clock=lambda: NOW,
            luck=random.Random(7),
            pause=pause or (lambda seconds: None),
        )

    def order(self, hosts: ComputeHosts, instance: objects.Instance, **arguments: Any) -> None:
        """Have *instance* built on the first host."""
        endpoint = ComputeEndpoint(hosts, self.first, "6.5")
        values: dict[str, Any] = {
            "image": {"id": "i"},
            "request_spec": objects.RequestSpec(num_instances=1),
            "filter_properties": {
                "retry": {"num_attempts": 1, "hosts": [[self.first, self.first]]}
            },
            "node": self.first,
            "limits": {"memory_mb": 4096},
        }
        context = RequestContext(user_id="u", project_id="p")
        endpoint.build_and_run_instance(context, instance, **{**values, **arguments})

    def row(self, instance_uuid: str) -> objects.Instance:
        with self.database.read() as conn:
            return instances.get(conn, instance_uuid)

    def node(self, host: str | None = None) -> objects.ComputeNode:
        """The node of the first host, or another."""
        name = host or self.first
        with self.database.read() as conn:
            return compute_nodes.get(conn, name, name)


@pytest.fixture
def fleet(
    conf: cfg.ConfigOpts, transport: Any, database: Database, scheduler: SchedulerEnd
) -> Fleet:
    fleet = Fleet(conf, database, transport)
    fleet.hosts.register()
    wait_until(lambda: len(scheduler.about(fleet.prefix)) == 3)
    scheduler.news.clear()
    return fleet


def test_registration(conf, transport, database, scheduler):
    fleet = Fleet(conf, database, transport)
    fleet.hosts.register()
    with database.read() as conn:
        found = services.list_all(conn)
        assert [(s.host, s.binary, s.topic, s.version) for s in found] == [
            (fleet.first, "nova-compute", "compute", 74),
            (fleet.second, "nova-compute", "compute", 74),
        ]
        assert not any(s.disabled or s.forced_down for s in found)
        assert mappings.get_host_mapping(conn, fleet.second) is not None
        groups = {a.name: (sorted(a.hosts), a.metadata) for a in aggregates.list_all(conn)}
    assert groups == {
        "fast": ([fleet.first, fleet.second], {"ssd": "true"}),
        "z1": ([fleet.first], {"availability_zone": "z1"}),
        "z2": ([fleet.second], {"availability_zone": "z2"}),
    }
    node = fleet.node()
    assert (node.vcpus, node.memory_mb_used, node.mapped) == (4, conf.reserved_host_memory_mb, 1)
    news = wait_until(
        lambda: len(scheduler.about(fleet.prefix)) == 3 and scheduler.about(fleet.prefix)
    )
    assert news[0] == ("aggregate", "fast", [fleet.first, fleet.second])


def test_registering_again_keeps_instances_and_what_operators_added(fleet, scheduler):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    before = fleet.node()
    with fleet.database.write() as conn:
        zone = aggregates.get(conn, "z1")
        aggregates.set_metadata(conn, zone.id, {"mine": "yes"})
        aggregates.add_host(conn, zone.id, "other")
    fleet.make().register()
    after = fleet.node()
    assert (after.id, after.uuid) == (before.id, before.uuid)
    assert (after.vcpus_used, after.running_vms) == (1, 1)
    with fleet.database.read() as conn:
        assert len(services.list_all(conn)) == 2
        zone = aggregates.get(conn, "z1")
    assert zone.metadata == {"availability_zone": "z1", "mine": "yes"}
    assert sorted(zone.hosts) == [fleet.first, "other"]


def test_new_services_may_begin_disabled(conf, transport, database, scheduler):
    conf.set_override("enable_new_services", False)
    try:
        fleet = Fleet(conf, database, transport)
        fleet.hosts.register()
    finally:
        conf.clear_override("enable_new_services")
    with database.read() as conn:
        found = services.get(conn, fleet.first, "nova-compute")
    assert found.disabled
    assert "config option" in found.disabled_reason


def test_a_build_that_was_cut_off_is_an_error_after_the_restart(fleet):
    instance = an_instance(fleet.database)

    def die(seconds: float) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        fleet.order(fleet.make(pause=die, build_seconds=1), instance)
    assert fleet.row(instance.uuid).task_state == "spawning"
    fleet.make().register()
    assert fleet.row(instance.uuid).vm_state == "error"
    assert fleet.node().running_vms == 0
    with fleet.database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert fault is not None
    assert f"{fleet.first} ended during the build" in fault.message


def test_one_heartbeat_for_all(fleet):
    fleet.hosts.heartbeat()
    fleet.hosts.heartbeat()
    with fleet.database.read() as conn:
        found = services.list_all(conn)
    assert [service.report_count for service in found] == [2, 2]
    assert {service.last_seen_up.replace(tzinfo=None) for service in found} == {NOW}


def test_a_build_ends_active_and_is_announced(fleet, scheduler):
    instance = an_instance(fleet.database)
    waited: list[float] = []
    fleet.order(fleet.make(pause=waited.append, build_seconds=3), instance)
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host, row.node) == (
        "active",
        None,
        fleet.first,
        fleet.first,
    )
    assert fleet.node().vcpus_used == 1
    assert waited == [3]
    wait_until(lambda: scheduler.about(fleet.prefix) == [("update", fleet.first, [instance.uuid])])


@pytest.mark.parametrize("cause", ["refusal", "failure"])
@pytest.mark.parametrize(
    ("host_list", "expected"),
    [(None, [None]), ([], [[]]), ([objects.Selection(service_host="h9", nodename="h9")], ["h9"])],
)
def test_what_cannot_be_built_goes_back_to_the_conductor(
    fleet, conductor, cause, host_list, expected
):
    memory_mb = BIG if cause == "refusal" else 512
    instance = an_instance(fleet.database, memory_mb=memory_mb)
    fleet.order(fleet.make(fail_rate=1.0), instance, host_list=host_list, security_groups=["sg"])
    order = wait_until(lambda: conductor.orders.get(instance.uuid))
    sent = order["host_lists"]
    assert expected == ([s.service_host for s in sent[0]] if host_list else sent)
    assert isinstance(order["request_spec"], objects.RequestSpec)
    assert order["instances"][0].host is None
    assert order["security_groups"] == ["sg"]
    assert order["context"].user_id == "u"
    retry = order["filter_properties"]["retry"]
    assert retry["hosts"] == [[fleet.first, fleet.first]]
    reason = "MB of memory requested" if cause == "refusal" else "failed to spawn"
    assert reason in retry["exc_reason"]
    assert f"Build of instance {instance.uuid} was re-scheduled: " in retry["exc"][-1]
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    node = fleet.node()
    assert (node.vcpus_used, node.running_vms) == (0, 0)
    assert node.stats["failed_builds"] == "1"


def test_newtons_orders_go_back_without_a_host_list(fleet, conductor):
    instance = an_instance(fleet.database)
    fleet.order(fleet.make(fail_rate=1.0), instance, request_spec={"image": {}})
    order = wait_until(lambda: conductor.orders.get(instance.uuid))
    assert "host_lists" not in order
    assert "request_spec" not in order


@pytest.mark.parametrize("properties", [{}, None, {"retry": None}, {"retry": {}}])
def test_without_retry_a_failure_is_final(fleet, conductor, properties):
    instance = an_instance(fleet.database)
    fleet.order(fleet.make(fail_rate=1.0), instance, filter_properties=properties)
    row = fleet.row(instance.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
    with fleet.database.read() as conn:
        fault = instances.latest_fault(conn, instance.uuid)
    assert fault is not None
    assert "failed to spawn" in fault.message
    assert instance.uuid not in conductor.orders


def test_the_seed_decides_which_builds_fail(fleet):
    def outcomes() -> list[str]:
        hosts = fleet.make(fail_rate=0.5)
        made = [an_instance(fleet.database) for _ in range(8)]
        for instance in made:
            fleet.order(hosts, instance, filter_properties={})
        return [fleet.row(instance.uuid).vm_state for instance in made]

    first = outcomes()
    assert set(first) == {"active", "error"}
    assert outcomes() == first


def test_an_instance_deleted_during_its_build_is_cleaned_up_silently(fleet, conductor, scheduler):
    instance = an_instance(fleet.database)
    context = RequestContext(user_id="u", project_id="p")

    def delete(seconds: float) -> None:
        assert fleet.node().running_vms == 1
        fleet.hosts.terminate(fleet.first, context, instance.uuid)

    fleet.order(fleet.make(pause=delete, build_seconds=1), instance)
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)
    assert fleet.node().running_vms == 0
    wait_until(lambda: scheduler.about(fleet.prefix) == [("delete", fleet.first, instance.uuid)])
    assert instance.uuid not in conductor.orders


def test_an_instance_deleted_before_its_build_is_left_alone(fleet, conductor):
    instance = an_instance(fleet.database)
    with fleet.database.write() as conn:
        instances.destroy(conn, instance.uuid)
    fleet.order(fleet.hosts, instance)
    assert fleet.node().running_vms == 0
    assert instance.uuid not in conductor.orders


def test_a_second_order_for_the_same_instance_does_nothing(fleet, scheduler):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    launched = fleet.row(instance.uuid).updated_at
    fleet.order(fleet.hosts, instance)
    assert fleet.node().running_vms == 1
    assert fleet.row(instance.uuid).updated_at == launched
    wait_until(lambda: scheduler.about(fleet.prefix))
    assert scheduler.about(fleet.prefix) == [("update", fleet.first, [instance.uuid])]


def test_no_more_builds_at_once_than_configured(fleet):
    gate, running, most = threading.Event(), threading.Semaphore(0), []

    def pause(seconds: float) -> None:
        running.release()
        most.append(fleet.node().current_workload)
        assert gate.wait(30)

    hosts = fleet.make(pause=pause, build_seconds=1, max_concurrent_builds=2)
    made = [an_instance(fleet.database) for _ in range(4)]
    threads = [threading.Thread(target=fleet.order, args=(hosts, each)) for each in made]
    for thread in threads:
        thread.start()
    for _ in range(2):
        assert running.acquire(timeout=30)
    assert fleet.node().current_workload == 2
    gate.set()
    for thread in threads:
        thread.join(30)
    assert max(most) <= 2
    assert fleet.node().running_vms == 4
    assert fleet.node().current_workload == 0


def test_periodic_messages(fleet, scheduler):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    wait_until(lambda: scheduler.about(fleet.prefix))
    scheduler.news.clear()
    fleet.hosts.announce()
    fleet.hosts.sync_instances()
    expected = [
        ("sync", fleet.first, [instance.uuid]),
        ("sync", fleet.second, []),
        ("update", fleet.first, [instance.uuid]),
        ("update", fleet.second, []),
    ]
    wait_until(lambda: scheduler.about(fleet.prefix) == expected)


def test_nothing_is_announced_when_schedulers_do_not_track(conf, fleet, scheduler):
    conf.set_override("track_instance_changes", False, group="filter_scheduler")
    try:
        hosts = fleet.make()
    finally:
        conf.clear_override("track_instance_changes", group="filter_scheduler")
    quiet = an_instance(fleet.database)
    fleet.order(hosts, quiet)
    loud = an_instance(fleet.database)
    fleet.order(fleet.hosts, loud)
    wait_until(lambda: scheduler.about(fleet.prefix))
    assert scheduler.about(fleet.prefix) == [("update", fleet.first, [loud.uuid])]


def test_every_major_version_is_served_over_the_bus(fleet, transport):
    serializer = RequestContextSerializer(ObjectSerializer())
    context = RequestContext(user_id="u", project_id="p")
    spec = objects.RequestSpec(num_instances=1)
    forms: list[tuple[str, dict[str, Any]]] = [
        ("4.0", {"request_spec": {}}),
        ("4.19", {"request_spec": {}, "host_list": []}),
        ("5.0", {"request_spec": spec, "host_list": []}),
        ("5.11", {"request_spec": spec, "host_list": [], "accel_uuids": []}),
        ("6.0", {"request_spec": spec, "host_list": None, "accel_uuids": []}),
    ]
    target = messaging.Target(topic="compute", version="6.0")
    client = messaging.get_rpc_client(transport, target, serializer=serializer)
    with contextlib.ExitStack() as ending:
        service.serve(transport, fleet.hosts, ending)
        built = []
        for version, arguments in forms:
            instance = an_instance(fleet.database, vcpus=1, memory_mb=64, root_gb=1)
            built.append(instance.uuid)
            client.prepare(server=fleet.second, version=version).cast(
                context,
                "build_and_run_instance",
                instance=instance,
                image={},
                filter_properties={},
                admin_password=None,
                injected_files=[],
                requested_networks=None,
                security_groups=[],
                block_device_mapping=objects.BlockDeviceMappingList(),
                node=fleet.second,
                limits={},
                **arguments,
            )
        wait_until(lambda: fleet.node(fleet.second).stats.get("num_vm_active") == str(len(forms)))
        removals: list[tuple[str, dict[str, Any]]] = [
            ("4.0", {"reservations": None}),
            ("5.0", {}),
            ("6.0", {}),
        ]
        for (version, arguments), built_uuid in zip(removals, built, strict=False):
            instance = fleet.row(built_uuid)
            bdms = objects.BlockDeviceMappingList()
            client.prepare(server=fleet.second, version=version).cast(
                context, "terminate_instance", instance=instance, bdms=bdms, **arguments
            )
        wait_until(lambda: fleet.node(fleet.second).running_vms == len(forms) - len(removals))


def test_an_order_to_delete_follows_the_instance(fleet, transport):
    instance = an_instance(fleet.database)
    fleet.order(fleet.hosts, instance)
    context = RequestContext(user_id="u", project_id="p")
    with contextlib.ExitStack() as ending:
        service.serve(transport, fleet.hosts, ending)
        fleet.hosts.terminate(fleet.second, context, instance.uuid)
        wait_until(lambda: fleet.node().running_vms == 0)
    with pytest.raises(errors.InstanceNotFound):
        fleet.row(instance.uuid)


def test_there_is_an_endpoint_for_every_major_version(fleet):
    served = [endpoint.target.version for endpoint in endpoints_of(fleet.hosts, fleet.first)]
    assert sorted(version.partition(".")[0] for version in served) == ["4", "5", "6"]
