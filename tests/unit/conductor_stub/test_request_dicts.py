"""The record of attempts in filter properties, and the legacy request dict as recorded."""

import logging

import pytest

from conductor_stub import request_dicts
from scheduler import objects
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import tried

HOST = objects.Selection(service_host="h", nodename="n", limits=objects.SchedulerLimits(vcpu=4))
UUID = "f4a0f8c0-0000-4000-8000-000000000001"
LIMITS = {"limits": {"vcpu": 4}}
TWICE = {"num_attempts": 2, "hosts": [["cmp0", "cmp0"], ["h", "n"]]}


@pytest.mark.parametrize(
    ("properties", "most", "after"),
    [
        pytest.param(tried(1), 3, {"retry": TWICE, **LIMITS}, id="second of three"),
        pytest.param({"retry": {}}, 3, {"num_attempts": 1}, id="empty record counts as none"),
        pytest.param({"retry": None}, 3, {"num_attempts": 1}, id="null record counts as none"),
        pytest.param({"force_hosts": None}, 3, {"num_attempts": 1}, id="null is not forced"),
        pytest.param({"force_hosts": ["a", "b"]}, 3, {"num_attempts": 1}, id="two forced hosts"),
        pytest.param({"force_hosts": ["a"]}, 3, {"force_hosts": ["a"]}, id="no limits if forced"),
        pytest.param({"force_nodes": ["a"]}, 3, {"force_nodes": ["a"], **LIMITS}, id="node"),
        pytest.param({}, 1, LIMITS, id="one attempt allowed is never retried"),
    ],
)
def test_attempts_are_counted_and_their_hosts_noted(properties, most, after):
    counted = request_dicts.populate_retry(properties, UUID, most)
    noted = request_dicts.populate_filter_properties(counted, HOST)
    if "num_attempts" in after:
        assert noted["retry"] == {**after, "hosts": [["h", "n"]]}
    else:
        assert noted == after
    assert request_dicts.attempts(noted) == noted.get("retry", {}).get("num_attempts", 1)


@pytest.mark.parametrize(
    ("record", "logged"),
    [
        ({"exc": ["line 1\n", "line 2"]}, ["line 1\nline 2"]),
        ({"exc": "text"}, ["text"]),
        ({"exc": []}, []),
        ({"exc": ["text"], "hosts": []}, []),
    ],
)
def test_the_last_hosts_error_is_logged_and_kept_without_its_reason(record, logged, caplog):
    given = {"retry": {**tried(1)["retry"], **record, "exc_reason": "no space"}}
    with caplog.at_level(logging.ERROR):
        counted = request_dicts.populate_retry(given, UUID, 3)
    lines = [f"Error from last host: cmp0 (node cmp0): {text}" for text in logged]
    assert [entry.getMessage() for entry in caplog.records] == lines
    assert counted["retry"] == {**tried(2)["retry"], **record}
    assert given["retry"]["num_attempts"] == 1, "the caller's are as they were"


def test_a_newton_compute_gets_the_recorded_shape():
    recorded = builders.wire("derived-newton-build_and_run_instance-v4.0")
    made = request_dicts.build_request_spec(recorded["image"], [builders.recorded_instance()])
    del made["instance_type"]["description"]  # came later
    for name in ("image", "num_instances", "instance_type"):
        assert made[name] == recorded["request_spec"][name]
    theirs, ours = recorded["request_spec"]["instance_properties"], made["instance_properties"]
    for name in ("system_metadata", "name", "pci_requests", "security_groups"):
        assert ours[name] == theirs[name]
    assert set(theirs) <= set(ours)
