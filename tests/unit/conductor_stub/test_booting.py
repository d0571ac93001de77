"""What a boot writes and asks, and how a deletion takes it back."""

import uuid

import pytest

from conductor_stub import booting, request_dicts, server_rows, servers
from conductor_stub.booting import BootRequest, Placement, Wishes
from scheduler import errors, objects
from scheduler.db import groups, instances
from scheduler.rpc.context import RequestContext
from tests.builders import a_conf
from tests.unit.conductor_stub import builders

ALIAS = '{"name": "gpu", "vendor_id": "10de", "device_type": "type-PCI", "numa_policy": "required"}'
PINNED = {"hw:cpu_policy": "dedicated", "pci_passthrough:alias": "gpu:2"}
IMAGE_ID = "155d900f-4e14-4e4c-a73d-069cbf4541e6"


def request(**changes):
    image = booting.image_of("cirros", {"hw_disk_bus": "scsi"})
    values = {"name": "web", "count": 1, "flavor": builders.flavor(), "image": image}
    return BootRequest(**{**values, "user_id": "user", "project_id": "project", **changes})


def create(database, **changes):
    with database.write() as conn:
        return [each.instance for each in booting.create_servers(conn, request(**changes))]


def test_several_servers_are_alike_but_for_their_numbers(database):
    with database.write() as conn:
        group = groups.create(conn, "g", "anti-affinity")
    placement = Placement("az", "h", "n", ("bad",))
    asked = {"group": group, "placement": placement, "hints": {"same_host": ["a", "b"]}}
    created = create(database, count=3, metadata={"role": "web"}, **asked)
    assert [each.display_name for each in created] == ["web-1", "web-2", "web-3"]
    assert [each.launch_index for each in created] == [0, 1, 2]
    assert len({each.reservation_id for each in created}) == 1
    with database.read() as conn:
        row = instances.get(conn, created[1].uuid)
        (disk,) = server_rows.disks_of(conn, row.uuid)
        assert server_rows.group_of(conn, row.uuid).uuid == group.uuid
        wanted = server_rows.list_build_requests(conn)
    assert [each.instance.uuid for each in wanted] == [each.uuid for each in created]
    assert (row.vm_state, row.task_state, row.host) == ("building", "scheduling", None)
    assert (row.memory_mb, row.flavor.name, row.availability_zone) == (2048, "m1.small", "az")
    assert (row.metadata, row.pci_requests.requests) == ({"role": "web"}, [])
    assert (disk.source_type, disk.destination_type, disk.boot_index) == ("image", "local", 0)
    assert booting.image_of_server(row)["properties"] == {"hw_disk_bus": "scsi"}
    properties = request(**asked).filter_properties()
    assert properties.pop("instance_type").name == "m1.small"
    hints = {"same_host": ["a", "b"], "group": group.uuid}
    forced = {"force_hosts": ["h"], "force_nodes": ["n"], "ignore_hosts": ["bad"]}
    assert properties == {"scheduler_hints": hints, **forced}
    assert request().filter_properties().keys() == {"scheduler_hints", "instance_type"}


def test_an_image_is_made_up_from_its_name():
    image = booting.image_of("cirros", {})
    assert (
        image["id"] == booting.image_of("cirros", {"a": "b"})["id"] == str(uuid.UUID(image["id"]))
    )
    assert (image["name"], booting.image_of(IMAGE_ID, {})["id"]) == ("cirros", IMAGE_ID)


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


@pytest.mark.parametrize("has_row", [True, False], ids=["without a host", "only asked for"])
def test_a_server_that_no_host_has_goes_at_once(database, has_row):
    with database.write() as conn:
        write = booting.create_servers if has_row else booting.want_servers
        (wanted,) = write(conn, request())
    uuid = wanted.instance_uuid
    assert servers.delete_server(RequestContext(), database, None, uuid) is None
    with database.read() as conn:
        with pytest.raises(errors.InstanceNotFound):
            instances.get(conn, uuid)
        assert server_rows.list_build_requests(conn) == []


def test_flavor_and_image_say_what_cells_and_devices_servers_get(database):
    flavor, wished = wishes(PINNED, {"hw_numa_nodes": "2"})
    created = create(database, flavor=flavor, count=2, wishes=wished)
    with database.read() as conn:
        rows = [instances.get(conn, each.uuid) for each in created]
    for row in rows:
        assert [each.pcpuset for each in row.numa_topology.cells] == [{0}, {1}]
        [device] = row.pci_requests.requests
        assert (device.count, device.alias_name, device.numa_policy) == (2, "gpu", "required")
        assert row.pci_requests.instance_uuid == row.uuid
    spec = objects.RequestSpec.from_primitives(request_dicts.build_request_spec({}, rows), {})
    for name in ("numa_topology", "pci_requests"):
        ours, theirs = getattr(spec, name), getattr(rows[0], name)
        assert ours.obj_to_primitive() == theirs.obj_to_primitive()


def wishes(extra_specs, properties, semantics="current"):
    flavor = builders.flavor(extra_specs=extra_specs, vcpus=2)
    conf = a_conf(pci__alias=[ALIAS], scheduler__semantics=semantics)
    return flavor, Wishes.from_flavor(flavor, booting.image_of("cirros", properties), conf)


def test_wishes_that_nobody_can_meet_are_named():
    with pytest.raises(errors.InvalidRequest, match="flavor.extra_specs.hw:cpu_policy"):
        wishes({"hw:cpu_policy": "none"}, {})
    with pytest.raises(errors.InvalidRequest, match="pci_passthrough:alias"):
        wishes({"pci_passthrough:alias": "tpu:1"}, {})
    assert wishes({"hw:cpu_policy": "none"}, {}, "newton")[1] == Wishes()


@pytest.mark.parametrize(("timeout", "in_time"), [(10, True), (0, False)])
def test_waiting_ends_when_it_is_done_or_the_time_is_over(database, timeout, in_time, capsys):
    (made,), shown = create(database), []

    def text(seen):
        shown.append(seen)
        with database.write() as conn:
            instances.update(conn, made.uuid, vm_state="active", task_state=None)
        return f"{len(shown)}"

    (seen,), ended = servers.watch(
        database, [made.uuid], lambda each: each.is_active, timeout, text
    )
    assert capsys.readouterr().err == "".join(f"{n + 1}\n" for n in range(len(shown)))
    assert (seen.is_active, ended, len(shown)) == (in_time, in_time, 1 + in_time)


def a_server(state="building", attempts=0, host=None):
    return servers.Server(builders.instance(vm_state=state, host=host), attempts, None)


HOSTED = [a_server(attempts=1, host="b"), a_server(attempts=2, host="a"), a_server("active", 1)]


@pytest.mark.parametrize(
    ("seen", "wanted", "expected"),
    [
        ([a_server(), a_server()], 2, "no conductor has taken 2 servers"),
        (HOSTED, 3, "no compute host (a, b) has finished building 2 servers"),
        (
            [a_server(attempts=1)],
            2,
            "no compute host has finished building 1 server; 1 server deleted meanwhile",
        ),
    ],
)
def test_a_timeout_names_who_was_not_heard_of(seen, wanted, expected):
    text = servers.unheard_of(seen, wanted, 5.0)
    assert text == f"not within 5 seconds: {expected}"
