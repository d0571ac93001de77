"""Instances from rows and from what compute services broadcast, with their image's properties."""

from __future__ import annotations

import datetime

import pytest

from scheduler import objects
from scheduler.hosts import instances
from scheduler.hosts.instances import TrackedInstance
from tests.builders import a_fleet, an_instance_row

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
DEBIAN = {"image_os_distro": "debian"}
OWN = {
    "node": "n1",
    "project_id": "p1",
    "user_id": "us1",
    "instance_type_id": 7,
    "vm_state": "active",
    "task_state": "resizing",
}
PROPERTIES = frozenset({("os_distro", "debian")})
TRACKED = TrackedInstance("u1", "h1", **OWN, updated_at=200.0, image_properties=PROPERTIES)


def broadcast(uuid="u1", **fields):
    times = {
        f"{name}_at": EPOCH + datetime.timedelta(seconds=seconds)
        for name, seconds in (("created", 100), ("updated", 200))
    }
    given = {"uuid": uuid, **OWN, **times, "system_metadata": DEBIAN, **fields}
    return objects.Instance(**given)


def test_all_of_a_row_is_known():
    row = an_instance_row("u1", "h1", updated_at=200, **OWN)
    assert instances.tracked(row, "h1", PROPERTIES) == TRACKED
    row.updated_at, row.created_at = None, datetime.datetime(1970, 1, 1, 0, 1)
    assert instances.tracked(row, "h1").updated_at == 60.0


def test_all_of_a_broadcast_is_known_and_only_on_the_last_host():
    table = a_fleet({}, {})
    instances.update(table, "h1", [broadcast(), broadcast("u2", updated_at=None)])
    assert table.instances["h1"]["u1"] == TRACKED
    assert table.instances["h1"]["u2"].updated_at == 100.0
    instances.update(table, "h2", [broadcast()])
    assert set(table.instances["h1"]) == {"u2"}
    assert table.instances["h2"]["u1"].host == "h2"


def test_image_properties_are_kept_until_others_are_told():
    table = a_fleet({})
    for said, vm_state, properties in (
        (objects.Instance(uuid="u1"), None, frozenset()),
        (broadcast(), "active", PROPERTIES),
        (objects.Instance(uuid="u1"), None, PROPERTIES),
        (broadcast(system_metadata={}), "active", frozenset()),
    ):
        instances.update(table, "h1", [said])
        found = table.instances["h1"]["u1"]
        assert (found.vm_state, found.image_properties) == (vm_state, properties)


def test_an_instance_that_has_moved_on_is_not_forgotten():
    table = a_fleet({"instances": ["u1"]}, {"instances": ["u2"]})
    for uuid in ("u2", "unknown"):
        instances.delete(table, "h1", uuid)
    assert table.host_of_instance == {"u1": "h1", "u2": "h2"}
    instances.delete(table, "h1", "u1")
    assert table.host_of_instance == {"u2": "h2"}


@pytest.mark.parametrize(
    ("host", "uuids", "agree"),
    [
        pytest.param("h1", ["u1", "u2"], True, id="the same"),
        pytest.param("h1", ["u2", "u1", "reserved"], True, id="with a reservation"),
        pytest.param("h1", ["u1"], False, id="one is missing"),
        pytest.param("h1", ["u1", "u2", "u3"], False, id="one more"),
        pytest.param("h1", [], False, id="none"),
        pytest.param("h2", [], True, id="none on either side"),
        pytest.param("h2", ["u1"], False, id="one on a host without any"),
    ],
)
def test_agreement(host, uuids, agree):
    table = a_fleet({"instances": ["reserved"]}, {})
    instances.update(table, "h1", [broadcast("u1"), broadcast("u2")])
    assert instances.agree(table, host, uuids) is agree


@pytest.mark.parametrize(
    ("system_metadata", "properties"),
    [
        (None, set()),
        ({"boot_roles": "x", "hw_vm_mode": "hvm"}, set()),
        ({"image_base_image_ref": "i1"}, set()),
        ({"image_hw_vm_mode": "hvm"}, {("hw_vm_mode", "hvm")}),
        ({"image_architecture": "AMD64"}, {("hw_architecture", "x86_64")}),
        ({"image_hw_cpu_cores": "4"}, {("hw_cpu_cores", "4")}),
        ({"image_hw_boot_menu": "yes"}, {("hw_boot_menu", "True")}),
        ({"image_hw_vm_mode": "hvm", "image_hw_cpu_cores": "x"}, set()),
    ],
)
def test_properties_recorded_with_an_instance(system_metadata, properties):
    assert instances.recorded(system_metadata) == properties


def test_properties_of_a_request():
    image = objects.ImageMeta(properties=objects.ImageMetaProps(hw_cpu_cores=4, os_type="linux"))
    assert instances.properties_of(None) == set()
    assert instances.properties_of(image) == {("hw_cpu_cores", "4"), ("os_type", "linux")}
