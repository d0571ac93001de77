"""Payloads are those of the recorded notifications."""

import pytest

from conductor_stub import failures
from scheduler import errors, notifications, objects
from tests.builders import OWN_UUID, a_request
from tests.unit.objects import wire_samples

DATA = "nova_object.data"
VERSIONED = (
    "notification-versioned-simple-start",
    "notification-versioned-simple-end",
    "notification-versioned-rich-start",
)
LEGACY = (
    "notification-legacy-simple-start",
    "notification-legacy-simple-end",
    "notification-legacy-rich-start",
)
OF_NEWTON = ("derived-newton-notification-start", "derived-newton-notification-end")


def the_spec(name):
    """The request that a notification of that name was about."""
    kind = "rich" if "rich" in name else "simple"
    message = wire_samples.load(f"select_destinations-{kind}.request")
    spec = objects.from_primitive(message["args"]["spec_obj"])
    return spec


@pytest.mark.parametrize("name", VERSIONED)
def test_versioned(name):
    recorded = wire_samples.load(name)["payload"]
    destination = recorded[DATA]["requested_destination"]
    # Nova's filter of requests has added the aggregate of the zone.
    destination[DATA]["aggregates"].pop()
    if destination[DATA] == {"aggregates": []}:
        recorded[DATA]["requested_destination"] = None
    ours = notifications.request(the_spec(name))
    assert wire_samples.comparable(ours) == wire_samples.comparable(recorded)


@pytest.mark.parametrize(
    ("properties", "payload"),
    [("1.44", "1.20"), ("1.42", "1.18"), ("1.38", "1.14"), ("1.12", "1.14")],
)
def test_the_payload_of_an_image_is_of_the_caller_s_release(properties, payload):
    message = wire_samples.load("select_destinations-simple.request")["args"]["spec_obj"]
    message[DATA]["image"][DATA]["properties"]["nova_object.version"] = properties
    image = notifications.request(objects.from_primitive(message))[DATA]["image"]
    assert image[DATA]["properties"]["nova_object.version"] == payload


@pytest.mark.parametrize("name", LEGACY)
def test_legacy(name):
    recorded = wire_samples.load(name)["payload"]["request_spec"]
    ours = notifications.legacy_request(the_spec(name))["request_spec"]
    assert ours.keys() == recorded.keys()
    for key in ("num_instances", "image", "instance_type"):
        assert _texts(ours[key]) == recorded[key], key
    theirs, mine = recorded["instance_properties"], ours["instance_properties"]
    assert mine.keys() == theirs.keys()
    # Nova dumps the insides of these two objects; here they are plain values.
    requests = [each["_obj_alias_name"] for each in theirs["pci_requests"]["_obj_requests"]]
    assert [each["alias_name"] for each in mine["pci_requests"]["requests"]] == requests
    dumped = {"pci_requests": None, "numa_topology": None}
    assert {**mine, **dumped} == {**theirs, **dumped}
    assert "_context" not in str(ours)


def _texts(value):
    if isinstance(value, dict):
        return {key: _texts(each) for key, each in value.items()}
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f") if hasattr(value, "strftime") else value


@pytest.mark.parametrize("name", OF_NEWTON)
def test_newton_s_legacy_form(name):
    recorded = wire_samples.load(name)["payload"]
    ours = notifications.legacy_request(the_spec("simple"))
    assert ours.keys() == recorded.keys()
    theirs, mine = recorded["request_spec"], ours["request_spec"]
    assert theirs.keys() <= mine.keys()
    assert theirs["instance_properties"].keys() <= mine["instance_properties"].keys()


def test_failed_task():
    recorded = wire_samples.load("notification-versioned-build_instances-error")["payload"]
    spec = the_spec("simple")
    text = recorded[DATA]["reason"][DATA]["exception_message"]
    try:
        raise errors.MaxRetriesExceeded(text)
    except errors.MaxRetriesExceeded as error:
        ours = failures.compute_task(spec.instance_uuid, spec, "error", error)
    apart = {"reason": None, "request_spec": None}
    assert {**ours[DATA], **apart} == {**recorded[DATA], **apart}
    mine, theirs = ours[DATA]["reason"], recorded[DATA]["reason"]
    assert mine.keys() == theirs.keys()
    assert mine[DATA].keys() == theirs[DATA].keys()
    said, place = ("exception", "exception_message"), ("module_name", "function_name")
    assert [mine[DATA][field] for field in said] == [theirs[DATA][field] for field in said]
    assert [mine[DATA][field] for field in place] == [__name__, "test_failed_task"]
    assert mine[DATA]["traceback"].endswith(f"nova.exception.MaxRetriesExceeded: {text}\n")


def test_a_task_without_request():
    ours = failures.compute_task(OWN_UUID, None, "error", ValueError("never raised"))
    assert ours[DATA]["request_spec"] is None
    assert ours[DATA]["reason"][DATA]["function_name"] == "unknown"


def test_legacy_failure_has_the_recorded_keys():
    recorded = wire_samples.load("notification-legacy-build_instances-error")["payload"]
    spec = recorded["request_spec"]
    error = errors.NoValidHost(reason="x")
    ours = notifications.legacy_failure(spec, OWN_UUID, "build_instances", error)
    assert ours.keys() == recorded.keys()
    assert ours["reason"] == "No valid host was found. x"
    assert ours["instance_properties"] == spec["instance_properties"]


GROUPS = objects.SecurityGroupList(
    objects=[objects.SecurityGroup(name="default"), objects.SecurityGroup(uuid=OWN_UUID)]
)


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({"force_hosts": ["h1", "h2"]}, "force_hosts", "h1"),
        ({"force_nodes": []}, "force_nodes", None),
        ({"ignore_hosts": ["h1"]}, "ignore_hosts", ["h1"]),
        ({}, "ignore_hosts", None),
        ({}, "security_groups", []),
        ({"security_groups": GROUPS}, "security_groups", ["default", OWN_UUID]),
    ],
)
def test_fields(fields, name, expected):
    assert notifications.request(a_request(**fields))[DATA][name] == expected


def test_a_destination_without_node_and_a_request_that_says_nothing():
    spec = a_request(requested_destination=objects.Destination(host="h1", node=None))
    data = notifications.request(spec)[DATA]["requested_destination"][DATA]
    assert data == {"host": "h1", "aggregates": None}
    assert not any(notifications.request(objects.RequestSpec())[DATA].values())
