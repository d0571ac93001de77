"""Arguments, results and payloads to their wire form and back."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from scheduler import errors, objects
from scheduler.rpc.context import (
    NotificationSerializer,
    ObjectSerializer,
    RequestContext,
    RequestContextSerializer,
)
from tests.unit.objects import wire_samples

CONTEXT = RequestContext("u", "p", overwrite=False)


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


@pytest.mark.parametrize(
    "envelope",
    [
        {"nova_object.name": "Flavor"},
        {"nova_object.name": ["Flavor"]},
        wire_samples.envelope("Flavor", memory_mb="much"),
        wire_samples.envelope("Flavor", "one"),
        {**wire_samples.envelope("Flavor"), "nova_object.data": None},
    ],
    ids=["nothing but a name", "name of a wrong type", "bad value", "bad version", "no data"],
)
def test_malformed_envelope_is_the_callers_fault(envelope: dict[str, Any]) -> None:
    with pytest.raises(errors.NovaException) as caught:
        ObjectSerializer().deserialize_entity(CONTEXT, {"spec_obj": [envelope]})
    assert caught.value.code == 400


def test_the_place_of_a_bad_value_is_named() -> None:
    bad = {"spec_obj": [1, wire_samples.envelope("Flavor", memory_mb="much")]}
    with pytest.raises(errors.InvalidRequest, match=r"Flavor.memory_mb.*\(in spec_obj\[1\]\)"):
        ObjectSerializer().deserialize_entity(CONTEXT, bad)


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
