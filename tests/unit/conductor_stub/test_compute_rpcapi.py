"""The casts to compute hosts, as they arrive on the bus, against the recorded ones."""

from __future__ import annotations

import queue

import oslo_messaging as messaging
import pytest
from oslo_config import cfg

from conductor_stub import compute_rpcapi
from conductor_stub.compute_rpcapi import METHODS, ComputeAPI
from conductor_stub.stores import Stores
from scheduler import errors, objects
from scheduler.db import services
from scheduler.db.databases import Databases
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders

DEADLINE_SECONDS = 20
NEWTON = {
    "instance", "image", "request_spec", "filter_properties", "admin_password", "injected_files",
    "requested_networks", "security_groups", "block_device_mapping", "node", "limits",
}  # fmt: skip


class Host:
    """Records what reaches ``compute.<name>``, undecoded."""

    def __init__(self, major):
        self.name = f"host-of-{major}"
        self.target = messaging.Target(version=f"{major}.99")
        self.received = queue.Queue()

    def build_and_run_instance(self, context, **arguments):
        self.received.put(arguments)

    terminate_instance = prep_resize = build_and_run_instance

    def next(self):
        return _without_changes(self.received.get(timeout=DEADLINE_SECONDS))


@pytest.fixture(scope="module")
def transport():
    return messaging.get_rpc_transport(cfg.CONF, url="fake:")  # the library insists on CONF


@pytest.fixture(scope="module")
def hosts(transport):
    """A host for each major version of the interface, on the in-process bus."""
    hosts, servers = {major: Host(major) for major in (3, 4, 5, 6)}, []
    for host in hosts.values():
        target = messaging.Target(topic="compute", server=host.name)
        policy = messaging.DefaultRPCAccessPolicy
        servers.append(
            messaging.get_rpc_server(
                transport, target, [host], executor="threading", access_policy=policy
            )
        )
        servers[-1].start()
    yield hosts
    for server in servers:
        server.stop()
        server.wait()


def _api(transport, cap=None, stores=None):
    return ComputeAPI(transport, builders.conf(upgrade_levels__compute=cap), stores)


def _recorded_build():
    recorded = builders.wire("compute-build_and_run_instance-v6.0-retry")
    read = ("instance", "request_spec", "requested_networks", "block_device_mapping")
    given = {name: objects.from_primitive(recorded[name]) for name in read}
    hosts = [builders.selection("cmp3")]
    return recorded, {**recorded, **given, "host_list": hosts, "legacy_spec": {"num_instances": 1}}


def _build(api, host, arguments):
    api.cast(RequestContext(user_id="u"), host.name, "build_and_run_instance", **arguments)
    return host.next()


def _without_changes(value):
    if isinstance(value, dict):
        return {k: _without_changes(v) for k, v in value.items() if k != "nova_object.changes"}
    return [_without_changes(each) for each in value] if isinstance(value, list) else value


def test_todays_cast_is_the_recorded_one(transport, hosts):
    recorded, build = _recorded_build()

    sent = _build(_api(transport), hosts[6], build)

    assert [each["nova_object.name"] for each in sent.pop("host_list")] == ["Selection"]
    del recorded["host_list"]
    assert sent == _without_changes(recorded)


def test_numa_limits_travel_as_an_envelope_in_a_plain_dict(transport, hosts):
    _, build = _recorded_build()
    build["limits"]["numa_topology"] = objects.NUMATopologyLimits(
        cpu_allocation_ratio=16.0, ram_allocation_ratio=1.5
    )

    limits = _build(_api(transport), hosts[6], build)["limits"]
    assert limits["numa_topology"]["nova_object.name"] == "NUMATopologyLimits"


def test_an_instance_without_a_host_cannot_be_told_to_end(transport):
    with pytest.raises(errors.NovaException, match="Unable to find host for Instance"):
        _api(transport).terminate_instance(
            RequestContext(), builders.instance(host=None), objects.BlockDeviceMappingList()
        )


def test_a_cap_that_is_no_use_stops_the_start(transport):
    with pytest.raises(errors.ConfigurationError):
        _api(transport, "havana")


@pytest.mark.parametrize(
    ("cap", "networks_are_tuples", "flavor_is_object", "limits"),
    [
        ("icehouse", True, False, {"memory_mb"}),
        ("3.33", False, False, {"memory_mb"}),
        ("3.36", False, True, {"memory_mb"}),
        ("3.40", False, True, {"memory_mb", "numa_topology"}),
    ],
)
def test_hosts_from_before_kilo_get_their_forms(
    transport, hosts, cap, networks_are_tuples, flavor_is_object, limits
):
    _, build = _recorded_build()
    build["filter_properties"]["instance_type"] = builders.flavor()
    build["limits"].update(memory_mb=1, numa_topology=objects.NUMATopologyLimits())

    sent = _build(_api(transport, cap), hosts[3], build)
    (network,) = sent["requested_networks"] if networks_are_tuples else [None]
    assert networks_are_tuples is isinstance(sent["requested_networks"], list)
    assert network is None or network[0] == build["requested_networks"][0].network_id
    flavor = sent["filter_properties"]["instance_type"]
    assert ("nova_object.name" in flavor) is flavor_is_object
    assert set(sent["limits"]) == limits


def _recorded_terminate():
    recorded = builders.wire("compute-terminate_instance-v6.0")
    given = {name: objects.from_primitive(value) for name, value in recorded.items()}
    return recorded, given


def _recorded_resize():
    recorded = builders.wire("compute-prep_resize-v6.0")
    read = objects.from_primitive
    given = {name: read(recorded[name]) for name in ("instance", "flavor", "request_spec")}
    hosts = [read(each) for each in recorded["host_list"]]
    more = {"host_list": hosts, "migration": None, "legacy_spec": {"num_instances": 1}}
    return recorded, {**recorded, **given, **more}


@pytest.mark.parametrize(
    ("cap", "major", "instance", "devices"),
    [
        (None, 6, "2.8", "1.18"),
        ("6.0", 6, "2.7", "1.18"),
        ("queens", 5, "2.3", "1.17"),
        ("newton", 4, "2.3", "1.17"),
        ("kilo", 4, "1.19", "1.9"),
    ],
)
def test_objects_go_in_the_version_that_the_hosts_release_read(
    transport, hosts, cap, major, instance, devices
):
    _, build = _recorded_build()

    sent = _build(_api(transport, cap), hosts[major], build)
    version = "nova_object.version"
    assert sent["instance"][version] == instance
    assert sent["block_device_mapping"][version] == devices
    assert objects.from_primitive(sent["instance"]).uuid == build["instance"].uuid


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        (
            "build_and_run_instance",
            "None@6.0 6.0@6.0 hibiscus@6.0 Ussuri@5.11 victoria@5.11 5.10@5.0 queens@5.0"
            " 4.21@4.19 pike@4.0 newton@4.0 4.0@4.0 icehouse@3.23 3.34@3.33 juno@3.33 3.39@3.36"
            " 3.40@3.40",
        ),
        ("terminate_instance", "None@6.0 6.0@6.0 Ussuri@5.0 5.10@5.0 4.21@4.0 icehouse@3.22"),
        (
            "prep_resize",
            "None@6.0 train@5.1 queens@5.0 4.22@4.21 4.18@4.18 pike@4.1 kilo@4.0 icehouse@None",
        ),
        ("confirm_resize", "None@6.0 train@5.0 newton@4.0 icehouse@None"),
        ("unshelve_instance", "5.13@5.13 newton@4.0"),
        ("rebuild_instance", "victoria@5.12 newton@4.5"),
    ],
)
def test_the_newest_version_below_the_cap_is_sent(method, sent):
    for row in sent.split():
        configured, version = row.split("@")
        cap = compute_rpcapi.parse_cap(None if configured == "None" else configured)
        if version == "None":
            with pytest.raises(errors.ConfigurationError, match="nothing can be sent"):
                compute_rpcapi.newest(METHODS[method].versions, cap)
        else:
            major, minor = compute_rpcapi.newest(METHODS[method].versions, cap)
            assert f"{major}.{minor}" == version


@pytest.mark.parametrize("configured", ["havana", "3.22", "4", "6.x", "nonsense", "4.0.1"])
def test_a_cap_that_is_no_use_is_refused_by_name(configured):
    with pytest.raises(
        errors.ConfigurationError, match=r"\[upgrade_levels\] compute.*" + configured
    ):
        compute_rpcapi.parse_cap(configured)


def test_a_cap_of_a_major_version_to_come_is_refused():
    with pytest.raises(errors.ConfigurationError, match=r"\[upgrade_levels\] compute"):
        compute_rpcapi.newest(compute_rpcapi.BUILD, (7, 0))


@pytest.mark.parametrize(
    ("service_version", "cap"),
    [
        *[(None, None), (74, (6, 0)), (56, (6, 0)), (55, (5, 0)), (30, (5, 0)), (22, (4, 17))],
        *[(15, (4, 13)), (9, (4, 11)), (2, (4, 5))],
    ],
)
def test_the_oldest_compute_service_sets_the_automatic_cap(service_version, cap):
    assert compute_rpcapi.cap_for_service_version(service_version) == cap


RECORDED = {
    "build_and_run_instance": _recorded_build,
    "terminate_instance": _recorded_terminate,
    "prep_resize": _recorded_resize,
}
ALWAYS = {
    "build_and_run_instance": NEWTON,
    "terminate_instance": {"instance", "bdms"},
    "prep_resize": {"instance", "image", "request_spec", "filter_properties", "node"},
}


@pytest.mark.parametrize("method", ["terminate_instance", "prep_resize"])
def test_todays_orders_are_the_recorded_ones(transport, hosts, method):
    recorded, given = RECORDED[method]()
    _api(transport).cast(RequestContext(), hosts[6].name, method, **given)
    expected = _without_changes(recorded)
    if "migration" in expected:
        expected["migration"] = None  # none is kept here
    assert hosts[6].next() == expected


def test_an_instances_own_host_is_told_to_end_it(transport, hosts):
    instance = builders.instance(host=hosts[6].name)
    disks = objects.BlockDeviceMappingList()
    _api(transport).terminate_instance(RequestContext(), instance, disks)
    assert hosts[6].next()["instance"]["nova_object.data"]["uuid"] == instance.uuid


@pytest.mark.parametrize(
    ("method", "cap", "lowest", "major", "more", "spec_is_object"),
    [
        ("build_and_run_instance", "6.0", None, 6, "host_list accel_uuids", True),
        ("build_and_run_instance", "ussuri", None, 5, "host_list accel_uuids", True),
        ("build_and_run_instance", "queens", None, 5, "host_list", True),
        ("build_and_run_instance", "4.19", None, 4, "host_list", False),
        ("build_and_run_instance", "newton", None, 4, "", False),
        ("build_and_run_instance", "juno", None, 3, "", False),
        ("build_and_run_instance", "auto", None, 6, "host_list accel_uuids", True),
        ("build_and_run_instance", "auto", 15, 4, "", False),
        ("terminate_instance", "5.11", None, 5, "", True),
        ("terminate_instance", "pike", None, 4, "reservations", False),
        ("terminate_instance", "juno", None, 3, "reservations", False),
        ("prep_resize", "stein", None, 5, "instance_type clean_shutdown migration host_list", True),
        (
            *("prep_resize", "4.21", None, 4),
            *("instance_type clean_shutdown migration host_list reservations", False),
        ),
        (
            *("prep_resize", "4.18", None, 4),
            *("instance_type clean_shutdown migration reservations", False),
        ),
        ("prep_resize", "newton", None, 4, "instance_type clean_shutdown reservations", False),
        ("prep_resize", "kilo", None, 4, "instance_type reservations", False),
    ],
)
def test_a_cap_decides_the_arguments(
    database, transport, hosts, method, cap, lowest, major, more, spec_is_object
):
    if lowest is not None:
        with database.write() as conn:
            services.create_many(conn, ["h"], services.COMPUTE_BINARY, "compute", lowest)
    api = _api(transport, cap, Stores(Databases(database)))
    _recorded, given = RECORDED[method]()
    api.cast(RequestContext(), hosts[major].name, method, **given)
    sent = hosts[major].next()
    assert set(sent) == ALWAYS[method] | set(more.split())
    assert api.takes_spec_objects() is spec_is_object
    if "request_spec" in sent:
        assert ("nova_object.name" in sent["request_spec"]) is spec_is_object
    if "instance_type" in sent:
        assert ("nova_object.name" in sent["instance_type"]) is (cap != "kilo")
