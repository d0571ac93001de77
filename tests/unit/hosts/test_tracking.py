"""What compute services broadcast of their instances."""

from __future__ import annotations

import datetime

import pytest

from scheduler import objects
from scheduler.hosts import image_properties
from scheduler.hosts.reservations import TrackedInstance
from scheduler.hosts.tracking import InstanceTracker
from tests.builders import a_fleet

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
DEBIAN = {"image_os_distro": "debian"}


def instance(uuid="u1", **fields):
    return objects.Instance(
        **{
            "uuid": uuid,
            "node": "n1",
            "project_id": "p1",
            "user_id": "us1",
            "instance_type_id": 7,
            "vm_state": "active",
            "task_state": "resizing",
            "created_at": EPOCH + datetime.timedelta(seconds=100),
            "updated_at": EPOCH + datetime.timedelta(seconds=200),
            "system_metadata": DEBIAN,
            **fields,
        }
    )


TRACKED = TrackedInstance(
    uuid="u1",
    host="h1",
    node="n1",
    project_id="p1",
    user_id="us1",
    instance_type_id=7,
    vm_state="active",
    task_state="resizing",
    updated_at=200.0,
    image_properties=image_properties.recorded(DEBIAN),
)


def test_everything_said_of_an_instance_is_known():
    table = a_fleet({}, {})
    tracker = InstanceTracker(table)

    tracker.update("h1", [instance(), instance("u2", updated_at=None)])

    assert table.instances["h1"]["u1"] == TRACKED
    assert table.instances["h1"]["u2"].updated_at == 100.0
    tracker.update("h2", [instance()])
    assert set(table.instances["h1"]) == {"u2"}
    assert table.instances["h2"]["u1"].host == "h2"


def test_image_properties_are_kept_until_others_are_told():
    table = a_fleet({})
    tracker = InstanceTracker(table)
    tracker.update("h1", [objects.Instance(uuid="u1")])
    assert table.instances["h1"]["u1"].image_properties == image_properties.recorded(None)

    tracker.update("h1", [instance()])
    tracker.update("h1", [objects.Instance(uuid="u1")])

    assert table.instances["h1"]["u1"].image_properties == TRACKED.image_properties
    assert table.instances["h1"]["u1"].vm_state is None
    tracker.update("h1", [instance(system_metadata={})])
    assert table.instances["h1"]["u1"].image_properties == image_properties.recorded({})


def test_an_instance_that_has_moved_on_is_not_forgotten():
    table = a_fleet({"instances": ["u1"]}, {"instances": ["u2"]})
    tracker = InstanceTracker(table)

    tracker.delete("h1", "u2")
    tracker.delete("h1", "unknown")
    assert table.host_of_instance == {"u1": "h1", "u2": "h2"}

    tracker.delete("h1", "u1")
    assert table.host_of_instance == {"u2": "h2"}


@pytest.mark.parametrize(
    ("host", "uuids", "agrees"),
    [
        pytest.param("h1", ["u1", "u2"], True, id="the same"),
        pytest.param("h1", ["u2", "u1", "picked"], True, id="with a pick"),
        pytest.param("h1", ["u1"], False, id="one is missing"),
        pytest.param("h1", ["u1", "u2", "u3"], False, id="one more"),
        pytest.param("h1", [], False, id="none"),
        pytest.param("h2", [], True, id="none on either side"),
        pytest.param("h2", ["u1"], False, id="one on a host without any"),
    ],
)
def test_agreement(host, uuids, agrees):
    table = a_fleet({"instances": ["picked"]}, {})
    tracker = InstanceTracker(table)
    tracker.update("h1", [instance("u1"), instance("u2")])

    assert tracker.agrees(host, uuids) is agrees
