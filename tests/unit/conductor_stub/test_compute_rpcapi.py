"""The casts to compute hosts, as they arrive on the bus, against the recorded ones."""

import queue

import oslo_messaging as messaging
import pytest
from oslo_config import cfg

from conductor_stub import compute_rpcapi
from conductor_stub.compute import registration
from conductor_stub.compute_rpcapi import METHODS, ComputeAPI
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext
from tests.builders import a_conf
from tests.unit.conductor_stub import builders
from tests.unit.objects import wire_samples

DEADLINE_SECONDS = 20
BUILD, END, RESIZE = "build_and_run_instance", "terminate_instance", "prep_resize"
RECORDINGS = {
    BUILD: "compute-build_and_run_instance-v6.0-retry",
    END: "compute-terminate_instance-v6.0",
    RESIZE: "compute-prep_resize-v6.0",
}
ALWAYS = {
    BUILD: "instance image request_spec filter_properties admin_password injected_files "
    "requested_networks security_groups block_device_mapping node limits",
    END: "instance bdms",
    RESIZE: "instance image request_spec filter_properties node",
}


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
        return without_changes(self.received.get(timeout=DEADLINE_SECONDS))


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


@pytest.fixture
def cast(transport, hosts):
    """Send a recorded order, with changes, to the host of a major version; what it gets."""

    def send(method, major, cap=None, stores=None, **changes):
        api = an_api(transport, cap, stores)
        arguments = {**read(method), **changes}
        api.cast(RequestContext(user_id="u"), hosts[major].name, method, **arguments)
        return hosts[major].next()

    return send


def an_api(transport, cap=None, stores=None):
    return ComputeAPI(transport, a_conf(upgrade_levels__compute=cap), stores)


def read(method):
    """The arguments of the recorded order, as its sender had them."""
    as_dicts = ("image", "filter_properties", "limits")
    found = {
        name: value if name in as_dicts else wire_samples.decoded(value)
        for name, value in builders.wire(RECORDINGS[method]).items()
    }
    if method == RESIZE:
        found["migration"] = None  # none is kept here
    return found if method == END else {**found, "legacy_spec": {"num_instances": 1}}


def without_changes(value):
    if isinstance(value, dict):
        return {k: without_changes(v) for k, v in value.items() if k != "nova_object.changes"}
    return [without_changes(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("method", RECORDINGS)
def test_todays_orders_are_the_recorded_ones(cast, method):
    expected = without_changes(builders.wire(RECORDINGS[method]))
    expected.update({"migration": None} if method == RESIZE else {})
    assert cast(method, 6) == expected


@pytest.mark.parametrize(
    ("cap", "major", "networks_are_tuples", "flavor_is_object", "limits"),
    [
        ("icehouse", 3, True, False, {"memory_mb"}),
        ("3.33", 3, False, False, {"memory_mb"}),
        ("3.36", 3, False, True, {"memory_mb"}),
        ("3.40", 3, False, True, {"memory_mb", "numa_topology"}),
        (None, 6, False, True, {"memory_mb", "numa_topology"}),
    ],
)
def test_hosts_from_before_kilo_get_their_forms(
    cast, cap, major, networks_are_tuples, flavor_is_object, limits
):
    given = {"memory_mb": 1, "numa_topology": objects.NUMATopologyLimits()}
    properties = {"instance_type": builders.flavor()}
    sent = cast(BUILD, major, cap, filter_properties=properties, limits=given)
    network_id = read(BUILD)["requested_networks"][0].network_id
    networks = sent["requested_networks"]
    assert networks_are_tuples is isinstance(networks, list)
    assert not networks_are_tuples or networks[0][0] == network_id
    flavor = sent["filter_properties"]["instance_type"]
    assert ("nova_object.name" in flavor) is flavor_is_object
    assert set(sent["limits"]) == limits
    in_envelope = sent["limits"].get("numa_topology", {"nova_object.name": "NUMATopologyLimits"})
    assert in_envelope["nova_object.name"] == "NUMATopologyLimits"


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
def test_objects_go_in_the_version_that_the_hosts_release_read(cast, cap, major, instance, devices):
    sent = cast(BUILD, major, cap)
    names = ("instance", "block_device_mapping")
    assert [sent[name]["nova_object.version"] for name in names] == [instance, devices]
    assert objects.from_primitive(sent["instance"]).uuid == read(BUILD)["instance"].uuid


def test_hosts_too_old_to_resize_are_told_of():
    with pytest.raises(errors.ConfigurationError, match="nothing can be sent"):
        compute_rpcapi.newest(METHODS[RESIZE].versions, compute_rpcapi.parse_cap("icehouse"))


@pytest.mark.parametrize("configured", ["havana", "3.22", "4", "6.x", "nonsense", "4.0.1", "7.0"])
def test_a_cap_that_is_no_use_stops_the_start(transport, configured):
    with pytest.raises(errors.ConfigurationError, match=r"\[upgrade_levels\] compute"):
        an_api(transport, configured)


@pytest.mark.parametrize(
    ("service_version", "cap"),
    [
        *[(None, None), (74, (6, 0)), (56, (6, 0)), (55, (5, 0)), (30, (5, 0)), (22, (4, 17))],
        *[(15, (4, 13)), (9, (4, 11)), (2, (4, 5))],
    ],
)
def test_the_oldest_compute_service_sets_the_automatic_cap(service_version, cap):
    assert compute_rpcapi.cap_for_service_version(service_version) == cap


#: Arguments of the versions of prep_resize besides those that all have, and of the others.
MOVED = "instance_type clean_shutdown reservations"
LISTED = "instance_type clean_shutdown migration host_list"


@pytest.mark.parametrize(
    ("method", "cap", "lowest", "major", "more", "spec_is_object"),
    [
        (BUILD, "6.0", None, 6, "host_list accel_uuids", True),
        (BUILD, "ussuri", None, 5, "host_list accel_uuids", True),
        (BUILD, "queens", None, 5, "host_list", True),
        (BUILD, "4.19", None, 4, "host_list", False),
        (BUILD, "newton", None, 4, "", False),
        (BUILD, "juno", None, 3, "", False),
        (BUILD, "auto", None, 6, "host_list accel_uuids", True),
        (BUILD, "auto", 15, 4, "", False),
        (END, "5.11", None, 5, "", True),
        (END, "pike", None, 4, "reservations", False),
        (END, "juno", None, 3, "reservations", False),
        (RESIZE, "stein", None, 5, LISTED, True),
        (RESIZE, "4.21", None, 4, f"{LISTED} reservations", False),
        (RESIZE, "4.18", None, 4, f"{MOVED} migration", False),
        (RESIZE, "newton", None, 4, MOVED, False),
        (RESIZE, "kilo", None, 4, "instance_type reservations", False),
    ],
)
def test_a_cap_decides_the_arguments(
    database, transport, cast, method, cap, lowest, major, more, spec_is_object
):
    if lowest is not None:
        with database.write() as conn:
            registration.put_services(conn, ["h"], lowest)
    sent = cast(method, major, cap, database)
    assert set(sent) == {*ALWAYS[method].split(), *more.split()}
    assert an_api(transport, cap, database).takes_spec_objects() is spec_is_object
    if "request_spec" in sent:
        assert ("nova_object.name" in sent["request_spec"]) is spec_is_object
    if "instance_type" in sent:
        assert ("nova_object.name" in sent["instance_type"]) is (cap != "kilo")
