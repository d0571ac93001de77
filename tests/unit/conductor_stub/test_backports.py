"""(object, versions that the receiver knows) -> the object in them."""

from __future__ import annotations

import pytest
from oslo_messaging.rpc import dispatcher

from conductor_stub.manager import BackportAPI
from scheduler import errors, objects
from scheduler.objects import registry
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders


def backported(obj, wanted):
    try:
        return BackportAPI().object_backport_versions(RequestContext(), obj, wanted)
    except dispatcher.ExpectedException as expected:
        raise expected.exc_info[1] from None


def versions_in(value):
    """Class names and versions of all objects in a wire form."""
    found = {}
    if isinstance(value, dict):
        if "nova_object.name" in value:
            found[value["nova_object.name"]] = value["nova_object.version"]
        for each in value.values():
            found |= versions_in(each)
    elif isinstance(value, list):
        for each in value:
            found |= versions_in(each)
    return found


def test_the_recorded_request_is_served():
    recorded = builders.wire("conductor-object_backport_versions")
    wanted = recorded["object_versions"]

    answer = backported(objects.from_primitive(recorded["objinst"]), wanted)

    assert answer["nova_object.version"] == wanted["RequestSpec"]
    inside = versions_in(answer)
    assert {name: wanted[name] for name in inside} == inside
    assert answer["nova_object.data"]["instance_uuid"] == builders.UUIDS[0]


def test_a_release_gets_what_it_read():
    recorded = builders.wire("conductor-object_backport_versions")
    newton = registry.of_release("Newton")

    answer = backported(objects.from_primitive(recorded["objinst"]), newton)

    assert answer["nova_object.version"] == "1.6"
    assert "network_metadata" not in answer["nova_object.data"]
    assert versions_in(answer)["ImageMetaProps"] == newton["ImageMetaProps"]


@pytest.mark.parametrize(
    ("given", "wanted", "field"),
    [
        ({"no": "object"}, {}, "objinst"),
        (builders.flavor(), {"Flavor": "new"}, "object_versions"),
        (builders.flavor(), ["Flavor"], "object_versions"),
        (builders.flavor(), {"Flavor": None}, "object_versions"),
    ],
)
def test_bad_arguments_are_named(given, wanted, field):
    with pytest.raises(errors.InvalidRequest, match=f"Invalid request: {field}"):
        backported(given, wanted)
