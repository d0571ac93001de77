"""Arguments, results and payloads to their wire form and back."""

from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any

import pytest

from scheduler import errors, objects
from scheduler.rpc.context import RequestContext
from scheduler.rpc.serializer import (
    NotificationSerializer,
    ObjectSerializer,
    RequestContextSerializer,
)

CONTEXT = RequestContext("u", "p", overwrite=False)
REQUESTS = [
    "select_destinations-simple.request.json",
    "select_destinations-rich.request.json",
    "select_destinations-multi3.request.json",
    "select_destinations-v4.0-rich.request.json",
    "select_destinations-v4.3-rich.request.json",
    "select_destinations-v4.4.request.json",
    "fanout-update_aggregates.cast.json",
    "fanout-update_instance_info.cast.json",
    "fanout-update_instance_info-init_host.cast.json",
    "derived-newton-select_destinations-v4.3-rich.request.json",
    "derived-pike-select_destinations-v4.4.request.json",
]


def without_changes(value: Any) -> Any:
    """*value* without the lists of changed fields, whose order and content are the sender's."""
    if isinstance(value, dict):
        return {k: without_changes(v) for k, v in value.items() if k != "nova_object.changes"}
    if isinstance(value, list):
        return [without_changes(element) for element in value]
    return value


def arguments(wire: pathlib.Path, name: str) -> dict[str, Any]:
    args: dict[str, Any] = json.loads((wire / name).read_text())["message"]["args"]
    return args


@pytest.mark.parametrize("name", REQUESTS)
def test_recorded_arguments_become_objects(wire: pathlib.Path, name: str) -> None:
    decoded = ObjectSerializer().deserialize_entity(CONTEXT, arguments(wire, name))

    assert "nova_object.name" not in json.dumps(decoded, default=repr)


@pytest.mark.parametrize("name", ["select_destinations-simple.request.json", REQUESTS[1]])
def test_recorded_arguments_are_sent_as_they_came(wire: pathlib.Path, name: str) -> None:
    sent = arguments(wire, name)
    serializer = ObjectSerializer()

    again = serializer.serialize_entity(CONTEXT, serializer.deserialize_entity(CONTEXT, sent))

    assert without_changes(again)["spec_obj"].keys() == without_changes(sent)["spec_obj"].keys()
    data = without_changes(sent)["spec_obj"]["nova_object.data"]
    assert without_changes(again)["spec_obj"]["nova_object.data"]["flavor"] == data["flavor"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("text", "text"),
        ((1, (2, 3)), [1, [2, 3]]),
        ({"a": {"x"}}, {"a": ["x"]}),
        (frozenset({7}), [7]),
    ],
)
def test_plain_values(value: Any, expected: Any) -> None:
    assert ObjectSerializer().serialize_entity(CONTEXT, value) == expected


def test_objects_inside_dicts_travel_as_envelopes() -> None:
    flavor = objects.Flavor(name="m1.tiny", memory_mb=512)

    sent = ObjectSerializer().serialize_entity(CONTEXT, {"instance_type": flavor, "n": [flavor]})

    assert sent["instance_type"]["nova_object.name"] == "Flavor"
    assert sent["n"][0]["nova_object.data"]["memory_mb"] == 512
    back = ObjectSerializer().deserialize_entity(CONTEXT, sent)
    assert isinstance(back["instance_type"], objects.Flavor)


@pytest.mark.parametrize(
    "envelope",
    [
        pytest.param({"nova_object.name": "Flavor"}, id="nothing but a name"),
        pytest.param(
            {
                "nova_object.name": "Flavor",
                "nova_object.namespace": "nova",
                "nova_object.version": "1.2",
                "nova_object.data": {"memory_mb": "much"},
            },
            id="bad value",
        ),
        pytest.param(
            {
                "nova_object.name": "Flavor",
                "nova_object.namespace": "nova",
                "nova_object.version": "one",
                "nova_object.data": {},
            },
            id="bad version",
        ),
        pytest.param({"nova_object.name": ["Flavor"]}, id="name of a wrong type"),
        pytest.param(
            {
                "nova_object.name": "Flavor",
                "nova_object.namespace": "nova",
                "nova_object.version": "1.2",
                "nova_object.data": None,
            },
            id="no data",
        ),
    ],
)
def test_malformed_envelope_is_the_callers_fault(envelope: dict[str, Any]) -> None:
    with pytest.raises(errors.NovaException) as caught:
        ObjectSerializer().deserialize_entity(CONTEXT, {"spec_obj": envelope})
    assert caught.value.code == 400


def test_bad_context_is_the_callers_fault() -> None:
    serializer = RequestContextSerializer()
    with pytest.raises(errors.InvalidRequest, match="read_deleted"):
        serializer.deserialize_context({"read_deleted": "perhaps"})


def test_payloads_are_plain() -> None:
    payload = {
        "request_spec": {
            "instance_type": objects.Flavor(name="m1.tiny", extra_specs={"a": "b"}),
            "seen": datetime.datetime(2026, 1, 2, 3, 4, 5),
            "hosts": {"cmp1"},
        }
    }

    plain = NotificationSerializer().serialize_entity(CONTEXT, payload)

    assert plain == {
        "request_spec": {
            "instance_type": {"name": "m1.tiny", "extra_specs": {"a": "b"}},
            "seen": "2026-01-02T03:04:05.000000",
            "hosts": ["cmp1"],
        }
    }
    json.dumps(plain)
