"""The request context, arguments, results and payloads on the wire, both ways."""

import datetime
import json

import pytest
from oslo_context import context as oslo_context

from scheduler import errors, objects
from scheduler.rpc.context import (
    NotificationSerializer,
    ObjectSerializer,
    RequestContext,
    RequestContextSerializer,
    get_admin_context,
)
from tests.unit.objects import wire_samples

CONTEXT = RequestContext("u", "p", overwrite=False)


@pytest.mark.parametrize(
    ("values", "attribute", "expected"),
    [
        pytest.param({}, "read_deleted", "no", id="read_deleted missing"),
        pytest.param({"read_deleted": "only"}, "read_deleted", "only", id="read_deleted kept"),
        pytest.param({}, "is_admin_project", True, id="is_admin_project missing"),
        pytest.param({}, "user_id", None, id="nobody"),
        pytest.param({"user": "u"}, "user_id", "u", id="user of Newton"),
        pytest.param({"user_id": "i", "user": "u"}, "user_id", "i", id="user_id wins"),
        pytest.param({"tenant": "t"}, "project_id", "t", id="tenant of Newton"),
        pytest.param({"project": "p"}, "project_id", "p", id="project of today"),
        pytest.param({"project_id": "i", "tenant": "t"}, "project_id", "i", id="project_id wins"),
        pytest.param({"roles": None}, "roles", [], id="roles null"),
        pytest.param({"is_admin": None, "roles": ["Admin"]}, "is_admin", True, id="by role"),
        pytest.param({"is_admin": None, "roles": ["member"]}, "is_admin", False, id="not by role"),
        pytest.param({"is_admin": False, "roles": ["admin"]}, "is_admin", False, id="as stated"),
        pytest.param({"domain": "d"}, "domain_id", "d", id="domain"),
        pytest.param({"client_timeout": 3, "who": "knows"}, "user_id", None, id="unknown keys"),
        pytest.param(
            {"timestamp": "2026-11-21T07:50:22"},
            "timestamp",
            datetime.datetime(2026, 11, 21, 7, 50, 22),
            id="no microseconds",
        ),
        pytest.param(
            {"timestamp": "2026-11-21T09:50:22.000001+02:00"},
            "timestamp",
            datetime.datetime(2026, 11, 21, 7, 50, 22, 1),
            id="with zone",
        ),
        pytest.param(
            {"service_catalog": [{"type": "placement"}, {"type": "compute"}]},
            "service_catalog",
            [{"type": "placement"}],
            id="catalog filtered",
        ),
    ],
)
def test_rebuilding(values, attribute, expected):
    assert getattr(RequestContext.from_dict(values), attribute) == expected


@pytest.mark.parametrize(("name", "value"), [("read_deleted", "maybe"), ("timestamp", "yesterday")])
def test_impossible_values_are_the_callers_fault(name, value):
    with pytest.raises(errors.InvalidRequest, match=name):
        RequestContextSerializer().deserialize_context({name: value})


def test_elevated_leaves_the_original_alone():
    context = RequestContext("u", "p", roles=["member"], is_admin=False)

    elevated = context.elevated(read_deleted="yes")

    assert (elevated.is_admin, elevated.read_deleted) == (True, "yes")
    assert elevated.roles == ["member", "admin"]
    assert (context.is_admin, context.read_deleted, context.roles) == (False, "no", ["member"])
    assert elevated.request_id == context.request_id


def test_admin_context_is_nobodys_and_does_not_become_current():
    current = RequestContext("u", "p")

    admin = get_admin_context()

    assert (admin.user_id, admin.project_id, admin.is_admin, admin.roles) == (None, None, True, [])
    assert oslo_context.get_current() is current


def test_redacted_copy_keeps_identity_without_secrets():
    context = RequestContext("u", "p", auth_token="secret", remote_address="10.0.0.1")

    redacted = context.redacted_copy()

    assert (redacted.request_id, redacted.user_id) == (context.request_id, "u")
    assert (redacted.auth_token, redacted.remote_address) == (None, None)
    assert oslo_context.get_current() is context


def test_log_values_hide_token_key_and_catalog():
    catalog = [{"type": "placement"}]
    profiler = {"hmac_key": "secret", "base_id": "1", "parent_id": "2"}
    context = RequestContext("u", auth_token="secret", service_catalog=catalog, trace_info=profiler)
    values = context.get_logging_values()
    assert "secret" not in str(values)
    assert "service_catalog" not in values
    assert (values["user_id"], values["request_id"]) == ("u", context.request_id)


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
def test_plain_values(value, expected):
    assert ObjectSerializer().serialize_entity(CONTEXT, value) == expected


def test_the_place_of_a_bad_value_is_named():
    bad = {"spec_obj": [1, wire_samples.envelope("Flavor", memory_mb="much")]}
    with pytest.raises(errors.InvalidRequest, match=r"Flavor.memory_mb.*\(in spec_obj\[1\]\)"):
        ObjectSerializer().deserialize_entity(CONTEXT, bad)


def test_payloads_are_plain():
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
