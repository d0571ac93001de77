"""Set and unset fields, unknown names, versions and broken envelopes."""

import logging

import pytest

from scheduler import errors, objects
from scheduler.objects import registry
from scheduler.objects.registry import MAX_DEPTH
from tests.unit.objects.wire_samples import envelope

GADGET = {**envelope("Flavor"), registry.NAME_KEY: "Gadget"}
CINDERS = {**envelope("Flavor"), registry.NAMESPACE_KEY: "cinder"}
GUEST = envelope("InstanceNUMATopology", cells=[envelope("InstanceNUMACell", cpuset=[0, "x"])])
UNSUPPORTED = "Version 2.0 of RequestSpec is not supported, supported version is 1.15"
IMAGE = envelope("ImageMeta", properties=envelope("ImageMetaProps", img_hv_type="foo"))


def test_unset_null_and_set_differ():
    flavor = objects.Flavor(name=None, vcpus="4")
    assert (flavor.is_set("name"), flavor.obj_attr_is_set("swap")) == (True, False)
    assert flavor.vcpus == 4
    assert flavor.memory_mb is None
    assert ("name" in flavor, "swap" in flavor, "nonsense" in flavor) == (True, False, False)
    assert dict(flavor) == {"name": None, "vcpus": 4}
    assert (flavor.get("vcpus"), flavor.get("swap", 7), flavor["vcpus"]) == (4, 7, 4)
    assert list(flavor.fields) == flavor.obj_fields
    assert {"name", "swap"} < set(flavor.obj_fields)
    flavor.wholly_unknown = object()
    assert flavor.obj_to_primitive()[registry.DATA_KEY] == {"name": None, "vcpus": 4}


@pytest.mark.parametrize("read", [getattr, objects.Flavor.is_set, objects.Flavor.get])
def test_nonsense_names_raise(read):
    with pytest.raises(AttributeError, match="nonsense"):
        read(objects.Flavor(), "nonsense")


@pytest.mark.parametrize(
    ("cls", "field", "value"),
    [
        (objects.Flavor, "extra_specs", {}),
        (objects.Flavor, "rxtx_factor", 1.0),
        (objects.InstanceGroup, "hosts", []),
        (objects.Destination, "host", None),
        (objects.Destination, "allow_cross_cell_move", False),
        (objects.RequestLevelParams, "root_required", set()),
        (objects.NUMAPagesTopology, "reserved", 0),
    ],
)
def test_unset_fields_read_as_documented(cls, field, value):
    assert getattr(cls(), field) == value


def test_collections_given_for_unset_fields_keep_what_is_put_in():
    group = objects.InstanceGroup()
    group.hosts.append("h1")
    assert (group.hosts, objects.InstanceGroup().hosts) == (["h1"], [])


def test_defaults_are_filled_only_where_documented():
    assert objects.RequestGroup().is_set("resources")
    assert objects.InstanceNUMACell().is_set("pagesize")
    assert not objects.InstanceNUMACell().is_set("cpu_topology")
    assert not objects.SchedulerLimits().is_set("vcpu")


def test_read_only_fields_are_set_once():
    node = objects.ComputeNode(id=1)
    node.id = 1
    with pytest.raises(errors.ObjectActionError, match="ComputeNode.id is read-only"):
        node.id = 2


def test_secrets_are_masked():
    cell = objects.CellMapping(name="c1", transport_url="rabbit://u:secret@h/")
    shown = repr(objects.Destination(cell=cell))
    assert "secret" not in shown
    assert "name='c1'" in shown


def test_list_objects_are_lists():
    networks = objects.NetworkRequestList()
    assert networks.obj_to_primitive()[registry.DATA_KEY] == {"objects": []}
    networks.objects.append(objects.NetworkRequest(network_id="auto"))
    assert ([n.network_id for n in networks], len(networks)) == (["auto"], 1)
    assert networks[0] in networks


# -- unknown fields and classes ----------------------------------------------------------------


def test_unknown_fields_are_emitted_again_with_the_senders_version(caplog):
    registry._report_newer.cache_clear()
    newer = envelope("Flavor", "1.77.3", vcpus=1, colour={"deep": ["blue"]})
    with caplog.at_level(logging.DEBUG, logger="scheduler.objects.registry"):
        for _ in range(3):
            flavor = objects.from_primitive(newer)
    assert flavor.obj_to_primitive() == newer
    assert flavor.copy().obj_to_primitive() == newer
    assert flavor.obj_to_primitive("1.2")[registry.DATA_KEY] == {"vcpus": 1}
    assert [r.getMessage() for r in caplog.records if "1.77.3" in r.getMessage()] == [
        "Reading Flavor 1.77.3, which is newer than our 1.2"
    ]


@pytest.mark.parametrize("data", [{"a": {"b": [1]}}, "no data"])
def test_unread_objects_stay_as_received(data):
    cache = {registry.NAME_KEY: "InstanceInfoCache", registry.DATA_KEY: data}
    received = envelope("Instance", uuid="u", info_cache=cache)
    instance = objects.from_primitive(received)
    assert instance.info_cache == cache
    assert instance.copy().obj_to_primitive() == received
    assert objects.to_plain(instance)["info_cache"] == data


@pytest.mark.parametrize(
    ("broken", "error", "text"),
    [
        (GADGET, errors.UnsupportedObjectError, "Gadget"),
        (CINDERS, errors.UnsupportedObjectError, "cinder.Flavor"),
        (envelope("RequestSpec", "2.0"), errors.IncompatibleObjectVersion, UNSUPPORTED),
        (
            *(envelope("RequestSpec", flavor=envelope("Flavor", "2.0")),),
            *(errors.IncompatibleObjectVersion, "2.0 of Flavor"),
        ),
        (envelope("Flavor", "new"), errors.InvalidRequest, "'new' is not a version"),
        (envelope("Flavor", "1"), errors.InvalidRequest, "'1' is not a version"),
        ({**envelope("Flavor"), registry.DATA_KEY: None}, errors.InvalidRequest, "lacks"),
        ({**envelope("Flavor"), registry.VERSION_KEY: 1.2}, errors.InvalidRequest, "lacks"),
        ({registry.NAME_KEY: ["Flavor"]}, errors.UnsupportedObjectError, "Flavor"),
        ({}, errors.UnsupportedObjectError, "None"),
        ([], errors.InvalidRequest, "no envelope"),
        (None, errors.InvalidRequest, "no envelope"),
    ],
)
def test_broken_envelopes(broken, error, text):
    with pytest.raises(error, match=text):
        objects.from_primitive(broken)


@pytest.mark.parametrize("nested", [CINDERS, GADGET, envelope("ImageMeta"), "text"])
def test_broken_nested_envelopes(nested):
    with pytest.raises(errors.InvalidRequest):
        objects.from_primitive(envelope("RequestSpec", flavor=nested))


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"flavor": envelope("Flavor", memory_mb="lots")}, "RequestSpec.flavor.memory_mb"),
        ({"flavor": None}, "RequestSpec.flavor"),
        ({"force_hosts": ["a", {}]}, "RequestSpec.force_hosts[1]"),
        ({"ignore_hosts": "abc"}, "RequestSpec.ignore_hosts"),
        ({"scheduler_hints": {"group": ["a", None]}}, "RequestSpec.scheduler_hints['group'][1]"),
        ({"numa_topology": GUEST}, "RequestSpec.numa_topology.cells[0].cpuset[1]"),
        ({"image": IMAGE}, "RequestSpec.image.properties.img_hv_type"),
    ],
)
def test_bad_values_are_named(data, path):
    with pytest.raises(errors.InvalidRequest) as caught:
        objects.from_primitive(envelope("RequestSpec", **data))
    assert caught.value.kwargs["field"] == path


@pytest.mark.parametrize(("levels", "accepted"), [(MAX_DEPTH - 2, True), (MAX_DEPTH + 3, False)])
@pytest.mark.parametrize("where", ["unknown_field", "fault"])
def test_values_kept_unread_may_not_nest_without_end(levels, accepted, where):
    deep = {}
    for _ in range(levels - 2):
        deep = {"x": deep}
    if where == "fault":
        deep = {**envelope("Flavor", **deep), registry.NAME_KEY: "InstanceFault"}
    received = envelope("Instance", **{where: deep})
    if accepted:
        assert objects.from_primitive(received).obj_to_primitive() == received
    else:
        with pytest.raises(errors.InvalidRequest, match="levels deep"):
            objects.from_primitive(received)
