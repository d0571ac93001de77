"""What a boot writes and asks, and how a deletion takes it back."""

from __future__ import annotations

import uuid

import pytest

from conductor_stub import block_devices, booting, build_requests, mappings, request_dicts, servers
from conductor_stub.booting import BootRequest, Placement, Wishes
from scheduler import errors, objects
from scheduler.db import groups, instances
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders


def request(**changes):
    values = {
        "name": "web",
        "count": 1,
        "flavor": builders.flavor(),
        "image": booting.image_of("cirros", {}),
        "user_id": "user",
        "project_id": "project",
    }
    return BootRequest(**{**values, **changes})


def create(database, wanted):
    with database.write() as conn:
        return [each.instance for each in booting.create_servers(conn, wanted)]


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        (None, Placement()),
        ("", Placement()),
        ("az", Placement("az")),
        ("az:h", Placement("az", "h")),
        ("az:h:n", Placement("az", "h", "n")),
        (":h", Placement(None, "h")),
        ("az::n", Placement("az", None, "n")),
        ("az:h:n:with:colons", Placement("az", "h", "n:with:colons")),
    ],
)
def test_a_zone_may_name_host_and_node(text, placement):
    assert Placement.parse(text) == placement


@pytest.mark.parametrize(
    ("changes", "properties"),
    [
        pytest.param({}, {"scheduler_hints": {}}, id="nothing special"),
        pytest.param(
            {"placement": Placement("az", "h", "n", ("bad",)), "hints": {"same_host": ["a", "b"]}},
            {
                "force_hosts": ["h"],
                "force_nodes": ["n"],
                "ignore_hosts": ["bad"],
                "scheduler_hints": {"same_host": ["a", "b"]},
            },
            id="forced, ignored and hints",
        ),
    ],
)
def test_the_conductor_is_asked_as_novas_api_does(changes, properties):
    asked = request(**changes).filter_properties()

    assert asked.pop("instance_type").name == "m1.small"
    assert asked == properties


@pytest.mark.parametrize(
    ("count", "name", "names"),
    [(1, "web", ["web"]), (3, "web", ["web-1", "web-2", "web-3"])],
)
def test_several_servers_are_numbered(database, count, name, names):
    created = create(database, request(count=count, name=name))

    assert [each.display_name for each in created] == names
    assert [each.launch_index for each in created] == list(range(count))
    assert len({each.uuid for each in created}) == count
    assert len({each.reservation_id for each in created}) == 1


def test_everything_that_the_conductor_needs_is_there(database):
    (created,) = create(database, request(metadata={"role": "web"}, placement=Placement("az")))

    with database.read() as conn:
        row = instances.get(conn, created.uuid)
        (disk,) = block_devices.of_instance(conn, created.uuid)
        mapping = mappings.get_instance_mapping(conn, created.uuid)
        asked_for = build_requests.get(conn, created.uuid)
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    assert (row.memory_mb, row.flavor.name, row.availability_zone) == (2048, "m1.small", "az")
    assert (row.metadata, row.pci_requests.requests) == ({"role": "web"}, [])
    assert (disk.source_type, disk.destination_type, disk.boot_index) == ("image", "local", 0)
    assert (mapping.cell_id, mapping.project_id) == (None, "project")
    assert asked_for.instance.uuid == created.uuid
    spec = request_dicts.build_request_spec({}, [created])
    assert spec["instance_properties"]["uuid"] == created.uuid


def test_members_of_a_group_are_in_it_before_they_are_scheduled(database):
    with database.write() as conn:
        group = groups.create(conn, "g", "anti-affinity")
    wanted = request(count=2, group=group)

    created = create(database, wanted)

    with database.read() as conn:
        assert groups.by_instance(conn, created[1].uuid).uuid == group.uuid
    assert wanted.filter_properties()["scheduler_hints"] == {"group": group.uuid}


@pytest.mark.parametrize(
    ("given", "same"),
    [("cirros", False), ("155d900f-4e14-4e4c-a73d-069cbf4541e6", True)],
)
def test_an_image_is_made_up_from_its_name(given, same):
    image = booting.image_of(given, {"hw_disk_bus": "scsi"})

    assert (image["id"] == given) is same
    assert image["id"] == booting.image_of(given, {})["id"]
    assert str(uuid.UUID(image["id"])) == image["id"]
    assert (image["name"], image["properties"]) == (given, {"hw_disk_bus": "scsi"})


# -- the way back -------------------------------------------------------------------------------


class Compute:
    def __init__(self):
        self.told = []

    def terminate_instance(self, context, instance, disks):
        self.told.append((instance.host, instance.uuid, len(disks)))


def test_a_server_without_a_host_goes_at_once_and_its_build_is_dropped(database):
    (created,) = create(database, request())

    host = servers.delete_server(RequestContext(), database, Compute(), created.uuid)

    assert host is None
    with database.read() as conn:
        with pytest.raises(errors.InstanceNotFound):
            instances.get(conn, created.uuid)
        with pytest.raises(errors.BuildRequestNotFound):
            build_requests.get(conn, created.uuid)
        assert mappings.get_instance_mapping(conn, created.uuid) is None


def test_the_host_of_a_server_is_told_to_delete_it(database):
    (created,) = create(database, request())
    with database.write() as conn:
        instances.update(conn, created.uuid, host="cmp1")
    compute = Compute()

    host = servers.delete_server(RequestContext(), database, compute, created.uuid)

    assert (host, compute.told) == ("cmp1", [("cmp1", created.uuid, 1)])
    with database.read() as conn:
        assert instances.get(conn, created.uuid).task_state == "deleting"


def test_a_server_that_is_only_asked_for_is_deleted_by_taking_that_back(database):
    with database.write() as conn:
        (wanted,) = booting.want_servers(conn, request())

    host = servers.delete_server(RequestContext(), database, Compute(), wanted.instance_uuid)

    assert host is None
    with database.read() as conn:
        assert build_requests.list_all(conn) == []
        assert mappings.get_instance_mapping(conn, wanted.instance_uuid) is None


def test_the_request_of_today_says_what_the_properties_of_newton_say(database):
    placement = Placement("az", "h", None, ("bad",))
    asked = request(count=2, placement=placement, hints={"same_host": "a"})
    with database.write() as conn:
        first, _ = booting.want_servers(conn, asked)

    spec = booting.request_spec(RequestContext(project_id="project"), asked, first)

    assert (spec.instance_uuid, spec.num_instances) == (first.instance_uuid, 2)
    assert (spec.force_hosts, spec.ignore_hosts, spec.availability_zone) == (["h"], ["bad"], "az")
    assert (spec.flavor.name, spec.scheduler_hints) == ("m1.small", {"same_host": ["a"]})
    assert (spec.project_id, spec.image.name) == ("project", "cirros")


def test_the_image_of_a_server_is_known_from_its_row(database):
    image = booting.image_of("cirros", {"min_disk": "3", "hw_disk_bus": "scsi"})
    (created,) = create(database, request(image=image))

    with database.read() as conn:
        found = booting.image_of_server(instances.get(conn, created.uuid))

    assert (found["id"], found["min_disk"], found["min_ram"]) == (image["id"], 3, 0)
    assert found["properties"] == image["properties"] == {"hw_disk_bus": "scsi"}


# -- as users see them --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sought", "error", "text"),
    [
        ("twin", errors.InvalidRequest, "2 servers have that name"),
        ("nobody", errors.InstanceNotFound, "Instance nobody could not be found"),
    ],
)
def test_a_name_must_mean_one_server(database, sought, error, text):
    for _ in range(2):
        create(database, request(name="twin"))

    with database.read() as conn, pytest.raises(error, match=text):
        servers.find(conn, [sought])


@pytest.mark.parametrize(
    ("changes", "state", "settled"),
    [
        ({}, "BUILDING (scheduling)", False),
        ({"vm_state": "active", "task_state": None}, "ACTIVE", True),
        ({"vm_state": "error", "task_state": None}, "ERROR", True),
    ],
)
def test_a_servers_state_is_one_text(database, changes, state, settled):
    (created,) = create(database, request(name=None))
    assert created.display_name == f"server-{created.uuid[:8]}"
    with database.write() as conn:
        if changes:
            instances.update(conn, created.uuid, **changes)
        instances.set_system_metadata(conn, created.uuid, "nova_scheduler_attempts", "2")
        instances.add_fault(conn, created.uuid, 500, "why")
        (server,) = servers.read(conn, [created.uuid])

    assert (server.state, server.is_settled, server.attempts) == (state, settled, 2)
    assert server.fault.message == "why"


ALIAS = '{"name": "gpu", "vendor_id": "10de", "device_type": "type-PCI", "numa_policy": "required"}'
PINNED = {"hw:cpu_policy": "dedicated", "pci_passthrough:alias": "gpu:2"}


def _conf(semantics="current", aliases=(ALIAS,)):
    conf = builders.conf()
    conf.set_override("alias", list(aliases), group="pci")
    conf.set_override("semantics", semantics, group="scheduler")
    return conf


def test_flavor_and_image_say_what_cells_and_devices_servers_get(database):
    flavor = builders.flavor(extra_specs=PINNED, vcpus=2)
    image = booting.image_of("cirros", {"hw_numa_nodes": "2"})
    wanted = request(flavor=flavor, count=2, wishes=Wishes.of(flavor, image, _conf()))

    uuids = [each.uuid for each in create(database, wanted)]

    with database.read() as conn:
        rows = [instances.get(conn, each) for each in uuids]
    for row in rows:
        assert [each.pcpuset for each in row.numa_topology.cells] == [{0}, {1}]
        [device] = row.pci_requests.requests
        assert (device.count, device.alias_name, device.numa_policy) == (2, "gpu", "required")
        assert row.pci_requests.instance_uuid == row.uuid
    made = request_dicts.build_request_spec({}, rows)
    spec = objects.RequestSpec.from_primitives(made, {})
    for name in ("numa_topology", "pci_requests"):
        ours, theirs = getattr(spec, name), getattr(rows[0], name)
        assert objects.to_primitive(ours) == objects.to_primitive(theirs)


@pytest.mark.parametrize(
    ("semantics", "extra_specs", "properties", "field"),
    [
        ("current", {"hw:numa_nodes": "0"}, {}, "flavor.extra_specs.hw:numa_nodes"),
        ("current", {"pci_passthrough:alias": "tpu:1"}, {}, "pci_passthrough:alias"),
        ("current", {"hw:cpu_policy": "none"}, {}, "flavor.extra_specs.hw:cpu_policy"),
        ("newton", {"hw:cpu_policy": "none"}, {}, None),
        (
            "current",
            {"hw:pci_numa_affinity_policy": "required"},
            {"hw_pci_numa_affinity_policy": "preferred"},
            "image.properties.hw_pci_numa_affinity_policy",
        ),
    ],
)
def test_wishes_that_nobody_can_meet_are_named(semantics, extra_specs, properties, field):
    flavor = builders.flavor(extra_specs=extra_specs)
    image = booting.image_of("cirros", properties)
    if field is None:
        assert Wishes.of(flavor, image, _conf(semantics)) == Wishes()
        return
    with pytest.raises(errors.InvalidRequest, match=field):
        Wishes.of(flavor, image, _conf(semantics))
