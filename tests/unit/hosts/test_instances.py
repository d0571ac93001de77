"""Instances from rows and broadcasts, and (terms, row, report) -> the end of a reservation."""

import datetime
from types import SimpleNamespace

import pytest

from scheduler import objects
from scheduler.hosts import instances
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.instances import End, Terms, TrackedInstance
from tests.builders import a_conf, an_instance_row

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
CREATED, EXPIRES = 1000.0, 1120.0
BUILD = Terms("h1", "n1", None, 7, CREATED, EXPIRES)
MOVE = BUILD._replace(source_host="h0")
RESIZE = BUILD._replace(source_host="h1")


def broadcast(uuid="u1", **fields):
    times = {
        f"{name}_at": EPOCH + datetime.timedelta(seconds=seconds)
        for name, seconds in (("created", 100), ("updated", 200))
    }
    given = {"uuid": uuid, **OWN, **times, "system_metadata": DEBIAN, **fields}
    return objects.Instance(**given)


@pytest.fixture
def manager():
    """It has read nothing, and needs not to."""
    return HostManager(a_conf(), None)


def test_all_of_a_row_is_known():
    row = an_instance_row("u1", "h1", updated_at=200, **OWN)
    assert instances.tracked(row, "h1", PROPERTIES) == TRACKED
    row.updated_at, row.created_at = None, datetime.datetime(1970, 1, 1, 0, 1)
    assert instances.tracked(row, "h1").updated_at == 60.0


def test_all_of_a_broadcast_is_known_and_only_on_the_last_host(manager):
    manager.update_instance_info(None, "h1", [broadcast(), broadcast("u2", updated_at=None)])
    on = manager.table.instances
    assert (on["h1"]["u1"], on["h1"]["u2"].updated_at) == (TRACKED, 100.0)
    manager.update_instance_info(None, "h2", [broadcast()])
    assert (set(on["h1"]), on["h2"]["u1"].host) == ({"u2"}, "h2")
    for uuid in ("u1", "unknown"):  # the one has moved on since
        manager.delete_instance_info(None, "h1", uuid)
    assert manager.table.host_of_instance == {"u1": "h2", "u2": "h1"}
    manager.delete_instance_info(None, "h1", "u2")
    assert manager.table.host_of_instance == {"u1": "h2"}


def test_image_properties_are_kept_until_others_are_told(manager):
    for said, vm_state, properties in (
        (objects.Instance(uuid="u1"), None, frozenset()),
        (broadcast(), "active", PROPERTIES),
        (objects.Instance(uuid="u1"), None, PROPERTIES),
        (broadcast(system_metadata={}), "active", frozenset()),
    ):
        manager.update_instance_info(None, "h1", [said])
        found = manager.table.instances["h1"]["u1"]
        assert (found.vm_state, found.image_properties) == (vm_state, properties)


@pytest.mark.parametrize(
    ("host", "uuids", "agree"),
    [
        pytest.param("h1", ["u1", "u2"], True, id="the same"),
        pytest.param("h1", ["u2", "u1", "reserved"], True, id="with a reservation"),
        pytest.param("h1", ["u1"], False, id="one is missing"),
        pytest.param("h1", ["u1", "u2", "u3"], False, id="one more"),
        pytest.param("h2", [], True, id="none on either side"),
        pytest.param("h2", ["u1"], False, id="one on a host without any"),
    ],
)
def test_a_host_that_disagrees_has_the_state_read_again(manager, host, uuids, agree, monkeypatch):
    manager.update_instance_info(None, "h1", [broadcast("u1"), broadcast("u2")])
    manager.table.put_instance("h1", "reserved", TrackedInstance("reserved", "h1"))
    reads = []
    monkeypatch.setattr(manager, "refresh", lambda: reads.append(1))
    manager.sync_instance_info(None, host, uuids)
    assert (reads == []) is agree


@pytest.mark.parametrize(
    ("system_metadata", "properties"),
    [
        (None, set()),
        ({"boot_roles": "x", "hw_vm_mode": "hvm"}, set()),
        ({"image_base_image_ref": "i1"}, set()),
        ({"image_hw_vm_mode": "hvm"}, {("hw_vm_mode", "hvm")}),
        ({"image_architecture": "AMD64"}, {("hw_architecture", "x86_64")}),
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


# --- the end of reservations ----------------------------------------------------------------------


def row(host="h1", updated_at=1010.0, **columns):
    return an_instance_row("u1", host, **{"updated_at": updated_at, **columns})


def building(task_state=None, host="h1", **columns):
    return row(host, vm_state="building", task_state=task_state, **columns)


RESIZING = row(instance_type_id=6, task_state="resize_prep")


@pytest.mark.parametrize(
    ("terms", "instance", "end"),
    [
        pytest.param(BUILD, None, None, id="nobody has heard of it"),
        pytest.param(BUILD, row(deleted=3), End.DELETED, id="deleted"),
        pytest.param(BUILD, building(host=None), None, id="nobody builds it yet"),
        pytest.param(BUILD, building(), None, id="its host has it"),
        pytest.param(BUILD, building("scheduling"), None, id="not counted by that task"),
        pytest.param(BUILD, building("networking"), End.REPORTED, id="counted by networking"),
        pytest.param(BUILD, building("block_device_mapping"), End.REPORTED, id="counted by disks"),
        pytest.param(BUILD, building("spawning"), End.REPORTED, id="counted by spawning"),
        pytest.param(BUILD, row(), End.REPORTED, id="runs; a build needs no report"),
        pytest.param(BUILD, row(vm_state=None), None, id="no state yet"),
        pytest.param(BUILD, row(vm_state="shelved"), None, id="shelved"),
        pytest.param(BUILD, row(vm_state="shelved_offloaded"), None, id="off its host"),
        pytest.param(BUILD, row(node="n1"), End.REPORTED, id="runs on the node"),
        pytest.param(BUILD, row(node="n2"), None, id="another node of the host"),
        pytest.param(BUILD, row("h2"), End.ELSEWHERE, id="runs elsewhere"),
        pytest.param(MOVE, row("h0", 1.0), None, id="has not left"),
        pytest.param(MOVE, row(None, 1.0), None, id="is nowhere"),
        pytest.param(MOVE, row("h2"), End.ELSEWHERE, id="went elsewhere"),
        pytest.param(BUILD, row(None, vm_state="error"), End.FAILED, id="failed"),
        pytest.param(BUILD, row(None, 1.0, vm_state="error"), End.FAILED, id="failed before"),
        pytest.param(MOVE, row("h0", 998.0, vm_state="error"), End.FAILED, id="just failed there"),
        pytest.param(MOVE, row("h0", 997.9, vm_state="error"), None, id="had failed there before"),
        pytest.param(MOVE, row("h0", 1001.0, task_state="resize_prep"), None, id="on its way"),
        pytest.param(MOVE, row("h0", 1001.0), End.REVERTED, id="came back, or never went"),
        pytest.param(MOVE, row("h0", 997.9), None, id="not yet on its way"),
        pytest.param(RESIZE, row(instance_type_id=6), End.REVERTED, id="has its flavor back"),
    ],
)
def test_what_the_row_of_the_instance_says(terms, instance, end):
    assert instances.end_of(terms, instance, float("-inf"), CREATED + 1) is end


@pytest.mark.parametrize(
    ("terms", "instance", "reported_at", "end"),
    [
        pytest.param(MOVE, row(), 1012.0, None, id="the report may be older"),
        pytest.param(MOVE, row(), 1012.1, End.REPORTED, id="a report since"),
        pytest.param(MOVE, row(instance_type_id=6), 1012.1, End.REPORTED, id="flavor elsewhere"),
        pytest.param(RESIZE, row(), 1012.0, None, id="resized in place, older report"),
        pytest.param(RESIZE, row(), 1012.1, End.REPORTED, id="resized in place"),
        pytest.param(RESIZE, RESIZING, 9999.0, None, id="not resized yet"),
    ],
)
@pytest.mark.parametrize("is_updated", [True, False], ids=["", "counted from its creation"])
def test_what_the_report_of_the_host_says(terms, instance, reported_at, end, is_updated):
    if not is_updated:
        instance = SimpleNamespace(**vars(instance))
        instance.created_at, instance.updated_at = instance.updated_at, None
    assert instances.end_of(terms, instance, reported_at, CREATED + 1) is end


@pytest.mark.parametrize(
    ("instance", "now", "end"),
    [
        (None, EXPIRES, None),
        (None, EXPIRES + 0.1, End.EXPIRED),
        (building(), EXPIRES + 0.1, End.EXPIRED),
        (row("h2"), EXPIRES + 0.1, End.ELSEWHERE),
    ],
)
def test_a_reservation_expires(instance, now, end):
    assert instances.end_of(BUILD, instance, float("-inf"), now) is end


def test_the_terms_of_a_claim():
    created_at, expires_at = (EPOCH + datetime.timedelta(seconds=s) for s in (CREATED, EXPIRES))
    claim = SimpleNamespace(**MOVE._asdict() | {"created_at": created_at, "expires_at": expires_at})
    assert instances.terms_of(claim) == MOVE
