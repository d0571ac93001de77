"""What the manager makes of a message's arguments, and of the driver's answer."""

import contextlib

import pytest
from keystoneauth1.exceptions import ConnectFailure

from scheduler import errors, objects
from scheduler.manager import SchedulerManager
from scheduler.rpc.context import ObjectSerializer, RequestContext
from tests.builders import OWN_UUID, a_conf, a_request
from tests.unit.rpc.fakes import RecordingDriver, a_selection

CONTEXT = RequestContext("u", "p", overwrite=False)
OTHER_UUID = "00000000-0000-4000-a000-000000000002"
VERSION_KEY, DATA_KEY = "nova_object.version", "nova_object.data"
NUMA_LIMITS = objects.NUMATopologyLimits(
    cpu_allocation_ratio=1.0,
    ram_allocation_ratio=1.0,
    network_metadata=objects.NetworkMetadata(physnets={"p1"}, tunneled=False),
)


def a_manager(driver, max_instances=3, told=None, **more):
    conf = a_conf(scheduler__max_instances_per_request=max_instances, **more)
    return SchedulerManager(conf, driver, told)


SPEC = {"spec_obj": a_request()}
NO_INSTANCES = objects.InstanceList(objects=[])
WRONG_REQUESTS = [
    ({}, "request_spec"),
    ({"filter_properties": {}}, "request_spec"),
    ({"request_spec": "m1.tiny"}, "request_spec"),
    ({"request_spec": {}, "filter_properties": []}, "filter_properties"),
    ({"spec_obj": None}, "spec_obj"),
    ({"spec_obj": {}}, "spec_obj"),
    ({"spec_obj": objects.Flavor()}, "spec_obj"),
    ({**SPEC, "instance_uuids": OWN_UUID}, "instance_uuids"),
    ({**SPEC, "instance_uuids": [OWN_UUID, 2]}, "instance_uuids"),
    ({**SPEC, "instance_uuids": [OWN_UUID] * 4}, "instance_uuids"),
    ({"spec_obj": objects.RequestSpec(num_instances=-1)}, "num_instances"),
    ({"spec_obj": objects.RequestSpec(num_instances=4)}, "num_instances"),
]


@pytest.mark.parametrize(
    ("method", "arguments", "field"),
    [
        *[("select_destinations", *row) for row in WRONG_REQUESTS],
        ("update_aggregates", {"aggregates": None}, "aggregates"),
        ("update_aggregates", {"aggregates": [{"id": 1}]}, "aggregates"),
        ("delete_aggregate", {"aggregate": 1}, "aggregate"),
        ("update_instance_info", {"host_name": "h", "instance_info": []}, "instance_info"),
        ("update_instance_info", {"host_name": None, "instance_info": NO_INSTANCES}, "host_name"),
        ("delete_instance_info", {"host_name": "h", "instance_uuid": None}, "instance_uuid"),
        ("delete_instance_info", {"host_name": 1, "instance_uuid": OWN_UUID}, "host_name"),
        ("sync_instance_info", {"host_name": "h", "instance_uuids": [None]}, "instance_uuids"),
        ("sync_instance_info", {"host_name": "h", "instance_uuids": None}, "instance_uuids"),
        ("sync_instance_info", {"host_name": [], "instance_uuids": []}, "host_name"),
    ],
)
def test_wrong_arguments_are_named(method, arguments, field):
    driver = RecordingDriver()
    with pytest.raises(errors.InvalidRequest) as caught:
        getattr(a_manager(driver), method)(CONTEXT, **arguments)
    assert caught.value.kwargs["field"] == field
    assert driver.calls.empty()


@pytest.mark.parametrize("name", ["vcpus", "memory_mb", "root_gb"])
def test_a_size_that_the_flavor_lacks_is_named(name):
    spec = a_request()
    sizes = spec.flavor.set_fields()
    del sizes[name]
    spec.flavor = objects.Flavor(**sizes)
    driver = RecordingDriver()
    with pytest.raises(errors.InvalidRequest) as caught:
        a_manager(driver).select_destinations(CONTEXT, spec_obj=spec)
    assert caught.value.kwargs["field"] == f"RequestSpec.flavor.{name}"
    assert driver.calls.empty()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hints": {str(n): ["x"] for n in range(5)}}, "scheduler_hints"),
        ({"hints": {"query": ["x"] * 5}}, "scheduler_hints.query"),
        ({"hints": {"query": ["x" * 11]}}, "scheduler_hints.query"),
        ({"ignore_hosts": list("abcde")}, "ignore_hosts"),
        ({"group": {"members": list("abcde")}}, "group.members"),
        ({"flavor": {"extra_specs": {"k": "x" * 11}}}, "extra_specs.k"),
        ({"flavor": {"extra_specs": dict.fromkeys("abcde", "")}}, "extra_specs"),
    ],
)
def test_what_is_too_large_is_named_with_the_option(changes, field):
    manager = a_manager(
        RecordingDriver(),
        scheduler__max_request_entries=4,
        scheduler__max_request_text_characters=10,
    )
    with pytest.raises(errors.InvalidRequest, match=r"\[scheduler\] max_request_") as caught:
        manager.select_destinations(CONTEXT, spec_obj=a_request(**changes))
    assert field in caught.value.kwargs["field"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"uuids": [OWN_UUID, OTHER_UUID, OWN_UUID]}, "instance_uuids", id="twice"),
        pytest.param({"uuids": ["x" * 37]}, "instance_uuids", id="long uuid"),
        pytest.param({"uuids": ["x\0"]}, "instance_uuids", id="uuid with NUL"),
        pytest.param({"uuids": ["\ud83d"]}, "instance_uuids", id="uuid with half a character"),
        pytest.param({"uuids": ["x "]}, "instance_uuids", id="uuid that ends in a space"),
        pytest.param({"own": "x" * 37}, "RequestSpec.instance_uuid", id="long own uuid"),
        pytest.param({"request_id": "x" * 256}, "request_id", id="long request id"),
        pytest.param({"request_id": "x\0"}, "request_id", id="request id with NUL"),
        pytest.param({"request_id": "\udc00"}, "request_id", id="request id with half a character"),
        pytest.param({"request_id": ["x"]}, "request_id", id="request id that is a list"),
        pytest.param({"request_id": {"x": 1}}, "request_id", id="request id that is a dict"),
        pytest.param({"flavor": {"id": 2**31}}, "flavor.id", id="flavor id"),
        pytest.param({"flavor": {"id": -(2**63)}}, "flavor.id", id="negative flavor id"),
        pytest.param(
            {"flavor": {"root_gb": 2**31 - 1, "ephemeral_gb": 1}}, "ephemeral_gb", id="sum of disks"
        ),
    ],
)
def test_what_no_column_holds_is_named(changes, field):
    driver = RecordingDriver()
    manager = a_manager(driver)
    context = RequestContext("u", "p", request_id=changes.get("request_id"), overwrite=False)
    spec = a_request(flavor=changes.get("flavor"))
    spec.instance_uuid = changes.get("own", OWN_UUID)
    with pytest.raises(errors.InvalidRequest) as caught:
        manager.select_destinations(context, spec_obj=spec, instance_uuids=changes.get("uuids"))
    assert field in caught.value.kwargs["field"]
    assert driver.calls.empty()
    [record] = manager.recorder.records
    assert len(record.request_id) <= 255
    assert record.request_id.isprintable()


@pytest.mark.parametrize(
    ("return_objects", "return_alternates", "wanted"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_alternates_only_with_objects(return_objects, return_alternates, wanted):
    driver = RecordingDriver()
    a_manager(driver).select_destinations(
        CONTEXT,
        spec_obj=a_request(),
        return_objects=return_objects,
        return_alternates=return_alternates,
    )
    assert driver.next_call()[2] == {"return_alternates": wanted}


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        pytest.param({}, {"memory_mb": 6144, "disk_gb": 100}, id="integers of the object"),
        pytest.param(
            {"limits_exact": {"memory_mb": 6144.5, "disk_gb": 100.25}},
            {"memory_mb": 6144.5, "disk_gb": 100.25},
            id="with fractions",
        ),
        pytest.param({"limits": None}, None, id="none, from the chance driver"),
        pytest.param({"limits": objects.SchedulerLimits()}, {}, id="no filter set any"),
    ],
)
def test_dict_form(fields, limits):
    driver = RecordingDriver()
    driver.answer = [[a_selection("a", **fields), a_selection("alternate")], [a_selection("b")]]
    reply = a_manager(driver).select_destinations(CONTEXT, spec_obj=a_request())
    assert [each["host"] for each in reply] == ["a", "b"]
    assert reply[0] == {"host": "a", "nodename": "a", "limits": limits}


def _request_of_version(version):
    return objects.from_primitive({**a_request().obj_to_primitive(), VERSION_KEY: version})


@pytest.mark.parametrize(
    ("arguments", "version"),
    [
        pytest.param({"spec_obj": _request_of_version("1.6")}, "1.0", id="Newton"),
        pytest.param({"spec_obj": _request_of_version("1.9")}, "1.0", id="before networks"),
        pytest.param({"spec_obj": _request_of_version("1.10")}, "1.1", id="with networks"),
        pytest.param({"spec_obj": a_request()}, "1.1", id="today"),
        pytest.param({"request_spec": {}, "filter_properties": {}}, "1.0", id="dicts"),
    ],
)
def test_dict_form_keeps_numa_limits_an_object(arguments, version):
    selection = a_selection(
        limits=objects.SchedulerLimits(memory_mb=6144, numa_topology=NUMA_LIMITS),
        limits_exact={"memory_mb": 6144.5, "numa_topology": NUMA_LIMITS},
    )
    driver = RecordingDriver()
    driver.answer = [[selection]]

    (reply,) = a_manager(driver).select_destinations(CONTEXT, **arguments)

    assert reply["limits"]["memory_mb"] == 6144.5
    envelope = reply["limits"]["numa_topology"]
    assert envelope["nova_object.name"] == "NUMATopologyLimits"
    assert envelope[VERSION_KEY] == version
    assert ("network_metadata" in envelope["nova_object.data"]) is (version != "1.0")


@pytest.mark.parametrize(
    ("version", "selections", "limits"),
    [("1.8", "1.0", "1.0"), ("1.12", "1.0", "1.1"), ("1.13", "1.1", "1.1"), ("1.15", "1.1", "1.1")],
    ids=["Queens", "Train", "Ussuri", "today"],
)
def test_selections_are_such_as_the_conductor_reads(version, selections, limits):
    driver = RecordingDriver()
    found = objects.SchedulerLimits(numa_topology=NUMA_LIMITS)
    driver.answer = [[a_selection(limits=found, availability_zone="z")]]
    request = _request_of_version(version)
    endpoint = a_manager(driver)
    answer = endpoint.select_destinations(CONTEXT, spec_obj=request, return_objects=True)
    ((sent,),) = ObjectSerializer().serialize_entity(None, answer)
    assert sent[VERSION_KEY] == selections
    assert ("availability_zone" in sent[DATA_KEY]) is (selections == "1.1")
    assert sent[DATA_KEY]["limits"][DATA_KEY]["numa_topology"][VERSION_KEY] == limits
    assert set(sent["nova_object.changes"]) <= sent[DATA_KEY].keys()


AGGREGATES = [objects.Aggregate(id=1, name="a"), objects.Aggregate(id=2, name="b")]


@pytest.mark.parametrize(
    ("sent", "count"),
    [
        *[(AGGREGATES[0], 1), (AGGREGATES[:1], 1), ([], 0)],
        (objects.AggregateList(objects=AGGREGATES), 2),
    ],
)
def test_aggregates_come_in_three_forms(sent, count):
    driver = RecordingDriver()
    a_manager(driver).update_aggregates(CONTEXT, sent)
    assert driver.next_call() == ("update_aggregates", (AGGREGATES[:count],), {})


class Told:
    """Keeps what is told, and when: before or after the driver was asked."""

    enabled = True

    def __init__(self, driver):
        self._driver = driver
        self.events = []

    def select_destinations(self, _context, phase, spec):
        self.events.append((phase, spec.instance_uuid, self._driver.calls.qsize()))


BOTH_EVENTS = [("start", OWN_UUID, 0), ("end", OTHER_UUID, 1)]


@pytest.mark.parametrize(
    ("answer", "enabled", "tells", "events"),
    [
        pytest.param([[a_selection()]] * 2, True, True, BOTH_EVENTS, id="success"),
        pytest.param(errors.NoValidHost(reason=""), True, True, BOTH_EVENTS[:1], id="no hosts"),
        pytest.param([[a_selection()]] * 2, False, True, [], id="switched off"),
        pytest.param([[a_selection()]] * 2, True, False, [], id="another kind of driver"),
    ],
)
def test_what_is_told_and_when(answer, enabled, tells, events):
    driver = RecordingDriver()
    driver.answer, driver.notifies_of_selections = answer, tells
    told = Told(driver)
    told.enabled = enabled
    spec, uuids = a_request(), [OWN_UUID, OTHER_UUID]
    with contextlib.suppress(errors.NoValidHost):
        a_manager(driver, told=told).select_destinations(
            CONTEXT, spec_obj=spec, instance_uuids=uuids
        )
    assert told.events == events
    assert spec.instance_uuid == OWN_UUID


def test_an_error_of_neutrons_client_stays_what_it_is(caplog):
    driver = RecordingDriver()
    driver.answer = ConnectFailure("no route")
    with pytest.raises(ConnectFailure, match="no route"):
        a_manager(driver).select_destinations(CONTEXT, **SPEC)
    assert "Internal fault" in caplog.text


def test_the_same_request_again_is_not_decided_again():
    driver = RecordingDriver()
    told = Told(driver)
    manager = a_manager(driver, told=told)
    replies = [
        manager.select_destinations(
            CONTEXT, spec_obj=a_request(), instance_uuids=[OWN_UUID], return_objects=wanted
        )
        for wanted in (True, True, False)
    ]
    assert driver.calls.qsize() == 1
    assert replies[0] == replies[1] == driver.answer
    assert replies[2][0]["host"] == "cmp1", "the form is that of each request"
    assert [phase for phase, *_rest in told.events] == ["start", "end"] * 3, "as Nova's would"
