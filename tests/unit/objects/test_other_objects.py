"""Networks, instances, aggregates, the plain form of everything, and texts in columns."""

import datetime

import pytest

from conductor_stub.wire_objects import network_tuples, networks_of
from scheduler import errors, objects
from scheduler.objects.numa import parse_cpu_spec
from scheduler.objects.registry import MAX_DEPTH, read_json

SIX = ("net", "192.0.2.1", "port", "pci", "arq", "profile")


@pytest.mark.parametrize("length", [2, 4, 6])
def test_network_tuples(length):
    networks = networks_of([SIX[:length]])
    assert network_tuples(networks) == [(SIX[:length] + (None, None))[:4]]
    assert networks[0].device_profile == (SIX[5] if length == 6 else None)


@pytest.mark.parametrize("values", [(), ("net",), SIX[:3], (*SIX, "more")])
def test_network_tuples_of_no_known_length(values):
    with pytest.raises(errors.InvalidRequest, match="tuple"):
        networks_of([values])


def test_instance_needs_only_a_uuid():
    instance = objects.Instance(uuid="u")
    assert (instance.name, instance.system_metadata, instance.host) == (None, {}, None)
    assert instance.locked is False
    instance.id = 255
    assert instance.name == "instance-000000ff"


@pytest.mark.parametrize(
    ("metadata", "zone"), [(None, None), ({"availability_zone": "z"}, "z"), ({"ssd": "true"}, None)]
)
def test_zone_of_an_aggregate(metadata, zone):
    aggregate = objects.Aggregate(name="a", metadata=metadata)
    assert aggregate.availability_zone == zone
    plain = {"name": "a", "metadata": metadata, "availability_zone": zone}
    assert objects.to_plain(aggregate) == plain


def test_plain_form():
    moment = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    instance = objects.Instance(
        id=1,
        access_ip_v4="192.0.2.1",
        launched_at=moment,
        security_groups=objects.SecurityGroupList(objects=[objects.SecurityGroup(name="sg")]),
        numa_topology=objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(cpuset={2, 1})]),
    )
    (plain,) = objects.to_plain({"instances": (instance,)})["instances"]
    (cell,) = plain.pop("numa_topology")["cells"]
    assert (cell["cpuset"], cell["pagesize"]) == ([1, 2], None)
    assert plain == {
        "id": 1,
        "access_ip_v4": "192.0.2.1",
        "launched_at": moment,
        "security_groups": [{"name": "sg"}],
        "name": "instance-00000001",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [("{}", {}), ('[1, "a"]', [1, "a"]), (b"null", None), ("1e999", float("inf"))],
)
def test_what_is_json(text, value):
    assert read_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[" * MAX_DEPTH * 2 + "1" + "]" * MAX_DEPTH * 2]
)
def test_what_is_not(text):
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        ("0-3,^2,5", {0, 1, 3, 5}),
        (" 1 , 2 ", {1, 2}),
        ("^1", set()),
        ("0-2,^0-1", {2}),
        ("^0-1,0-4", {2, 3, 4}),
        (" 1 - 3 ", {1, 2, 3}),
        *[(text, None) for text in ("1-3-5", "^", "^a", "3-1", "a", "1-", "-1", "0-999999999")],
    ],
)
def test_cpu_specs(text, cpus):
    if cpus is None:
        with pytest.raises(ValueError, match="CPU"):
            parse_cpu_spec(text)
    else:
        assert parse_cpu_spec(text) == cpus
