"""Filters written for the dict get it, and everything else of theirs stays."""

import pytest

from scheduler import objects
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.base import BaseHostFilter, filter_properties_of
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_fleet, a_request, candidates, names

REQUEST = a_request(
    image={"hw_architecture": "x86_64", "os_type": "linux"},
    hints={"one": ["a"], "two": ["b", "c"]},
    tried=[("h9", "n9")],
    ignore_hosts=["h7"],
    project_id="p1",
    availability_zone="z1",
    group={"policy": "affinity", "hosts": ["h1"], "uuid": OWN_UUID},
    config_options={"spare": "kept"},
)


class Roomy(BaseHostFilter):
    """As the RAM filter of Havana read its request."""

    run_filter_once_per_request = True

    def host_passes(self, host_state, filter_properties):
        return host_state.free_ram_mb >= filter_properties.get("instance_type")["memory_mb"]


class RoomyOnRebuild(Roomy):
    RUN_ON_REBUILD = True


class FirstOnly(BaseHostFilter):
    """Decides on the whole list."""

    def filter_all(self, filter_obj_list, filter_properties):
        assert filter_properties["project_id"] == "p1"
        return list(filter_obj_list)[:1]


class OfTheCaller(BaseHostFilter):
    def host_passes(self, host_state, filter_properties):
        return host_state.host == filter_properties["context"].elevated().remote_address


FLEET = a_fleet({"free_ram_mb": 100}, {"free_ram_mb": 512}, {})


@pytest.mark.parametrize(("cls", "left"), [(Roomy, ["h2", "h3"]), (FirstOnly, ["h1"])])
def test_it_decides_on_the_dict(cls, left):
    found = FilterChain([cls()]).run(candidates(FLEET), REQUEST)

    [count] = found.counts
    assert names(found.hosts) == left
    assert (count.name, count.start, count.end) == (cls.__name__, 3, len(left))


def test_it_has_the_context_of_the_caller():
    RequestContext(remote_address="h2")  # the current one from now on
    found = FilterChain([OfTheCaller()]).run(candidates(FLEET), REQUEST)
    assert names(found.hosts) == ["h2"]


@pytest.mark.parametrize(("cls", "left"), [(Roomy, 3), (RoomyOnRebuild, 2)])
def test_rebuild_checks(cls, left):
    request = a_request(hints={"_nova_check_type": ["rebuild"]})
    found = FilterChain([cls()]).run(candidates(FLEET), request)

    assert len(found.hosts) == left


def test_it_may_be_asked_once_per_request():
    found = FilterChain([Roomy()]).run(candidates(FLEET), REQUEST, index=1)
    assert (len(found.hosts), found.counts) == (3, [])


def test_where_old_filters_find_what_they_ask_for():
    found = filter_properties_of(REQUEST)

    flavor, spec = found["instance_type"], found["request_spec"]
    assert (flavor["memory_mb"], flavor["extra_specs"]) == (512, {})
    assert (spec["instance_type"]["name"], spec["num_instances"]) == ("m1.tiny", 1)
    instance = spec["instance_properties"]
    named = [instance[name] for name in ("project_id", "availability_zone", "uuid")]
    assert named == ["p1", "z1", OWN_UUID]
    assert (instance["root_gb"], instance["image_ref"], instance["os_type"]) == (1, "", "linux")
    image = spec["image"]["properties"]
    assert (image["architecture"], image["hw_architecture"]) == ("x86_64", "x86_64")
    assert (found["project_id"], found["os_type"]) == ("p1", "linux")
    assert found["scheduler_hints"] == {"one": "a", "two": ["b", "c"]}
    assert (found["retry"]["num_attempts"], found["retry"]["hosts"]) == (1, [["h9", "n9"]])
    assert (found["ignore_hosts"], found["pci_requests"]) == (["h7"], None)
    assert (found["group_hosts"], found["group_policies"]) == (["h1"], ["affinity"])
    assert found["config_options"] == {"spare": "kept"}


def test_a_request_that_says_next_to_nothing():
    properties = filter_properties_of(objects.RequestSpec(flavor=objects.Flavor()))
    assert (properties["scheduler_hints"], properties["project_id"]) == ({}, None)
    assert properties["request_spec"]["image"] == {"properties": {}}


def test_image_and_devices_are_those_of_the_request():
    devices = objects.InstancePCIRequest(count=2, spec=[{"vendor_id": "8086"}])
    request = a_request(pci_requests=objects.InstancePCIRequests(requests=[devices]))
    request.image = objects.ImageMeta(id=OWN_UUID, properties=objects.ImageMetaProps())
    before = request.obj_to_primitive()

    properties = filter_properties_of(request)

    assert properties["request_spec"]["instance_properties"]["image_ref"] == OWN_UUID
    [found] = properties["pci_requests"]["requests"]
    assert (found["count"], found["spec"]) == (2, [{"vendor_id": "8086"}])
    properties["request_spec"]["instance_properties"].clear()
    assert request.obj_to_primitive() == before
