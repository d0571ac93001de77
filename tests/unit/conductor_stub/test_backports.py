"""(object, versions that the receiver knows) -> the object in them."""

import pytest

from conductor_stub.manager import BackportAPI
from conductor_stub.releases import HISTORY, versions_of
from scheduler import errors, objects
from scheduler.objects import registry
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import call
from tests.unit.objects import wire_samples


def backported(obj, wanted):
    return call(BackportAPI().object_backport_versions, RequestContext(), obj, wanted)


def test_the_recorded_request_is_served():
    recorded = builders.wire("conductor-object_backport_versions")
    wanted = recorded["object_versions"]
    answer = backported(objects.from_primitive(recorded["objinst"]), wanted)
    inside = [answer]
    for each in inside:
        values = each.values() if isinstance(each, dict) else each
        inside += [value for value in values if isinstance(value, dict | list)]
        if "nova_object.name" in each:
            assert each["nova_object.version"] == wanted[each["nova_object.name"]]
    assert answer["nova_object.data"]["instance_uuid"] == builders.UUIDS[0]


def test_the_history_ends_with_our_versions():
    newest = {name: history.split()[-1].split("@")[0] for name, history in HISTORY.items()}
    assert newest == {name: registry.CLASSES[name].VERSION for name in HISTORY}


def test_a_release_gets_what_it_read():
    request = wire_samples.load("select_destinations-rich.request")
    spec = objects.from_primitive(request["args"]["spec_obj"])
    answer = wire_samples.without_changes(backported(spec, versions_of("Newton")))
    newton = wire_samples.load("derived-newton-select_destinations-v4.3-rich.request")
    expected = wire_samples.without_changes(newton["args"]["spec_obj"])
    # The sample was made from a request without these two.
    del answer[registry.DATA_KEY]["id"]
    image = answer[registry.DATA_KEY]["image"][registry.DATA_KEY]["properties"]
    del image[registry.DATA_KEY]["traits_required"]
    for cell in expected[registry.DATA_KEY]["numa_topology"][registry.DATA_KEY]["cells"]:
        del cell[registry.DATA_KEY]["cpu_topology"]
    assert answer == expected


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
