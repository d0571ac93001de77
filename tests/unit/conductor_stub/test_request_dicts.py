"""Legacy request dicts, and the record of attempts in filter properties."""

from __future__ import annotations

import logging

import pytest

from conductor_stub import request_dicts
from conductor_stub.records import Candidate
from scheduler import errors
from tests.unit.conductor_stub import builders

HOST = Candidate("h", "n", {"vcpu": 4}, None)
UUID = "f4a0f8c0-0000-4000-8000-000000000001"


def _tried(attempts, **more):
    return {"retry": {"num_attempts": attempts, "hosts": [["cmp1", "n1"]], **more}}


@pytest.mark.parametrize(
    ("properties", "max_attempts", "attempts_after"),
    [
        pytest.param({}, 3, 1, id="first of three"),
        pytest.param(_tried(1), 3, 2, id="second of three"),
        pytest.param(_tried(2), 3, 3, id="third of three"),
        pytest.param({"retry": {}}, 3, 1, id="empty record counts as none"),
        pytest.param({"retry": None}, 3, 1, id="null record counts as none"),
        pytest.param({"force_hosts": None, "force_nodes": []}, 3, 1, id="null is not forced"),
        pytest.param({"force_hosts": ["a", "b"]}, 3, 1, id="two forced hosts keep retrying"),
        pytest.param({"force_hosts": ["a"]}, 3, None, id="one forced host is never retried"),
        pytest.param({"force_nodes": ["a"]}, 3, None, id="one forced node is never retried"),
        pytest.param({}, 1, None, id="one attempt allowed is never retried"),
    ],
)
def test_an_allowed_attempt_is_counted(properties, max_attempts, attempts_after):
    counted = request_dicts.populate_retry(properties, UUID, max_attempts)

    if attempts_after is None:
        assert "retry" not in counted
        assert request_dicts.attempts(counted) == 1
    else:
        assert request_dicts.attempts(counted) == attempts_after


def test_the_reason_of_the_last_failure_is_told_and_its_traceback_kept():
    told = {"exc": ["Traceback ..."], "exc_reason": "no space"}
    counted = request_dicts.populate_retry(_tried(1, **told), UUID, 3)
    expected = {"num_attempts": 2, "hosts": [["cmp1", "n1"]], "exc": ["Traceback ..."]}
    assert counted["retry"] == expected
    given = _tried(3, **told)
    with pytest.raises(errors.MaxRetriesExceeded, match="attempts 3 .*Last exception: no space"):
        request_dicts.populate_retry(given, UUID, 3)
    assert given == _tried(3, **told), "the caller's are as they were"


@pytest.mark.parametrize(
    ("record", "logged"),
    [
        ({"exc": ["line 1\n", "line 2"]}, ["Error from last host: cmp1 (node n1): line 1\nline 2"]),
        ({"exc": "text"}, ["Error from last host: cmp1 (node n1): text"]),
        ({"exc": []}, []),
        ({"exc": ["text"], "hosts": []}, []),
    ],
)
def test_the_last_hosts_error_is_logged(record, logged, caplog):
    with caplog.at_level(logging.ERROR):
        request_dicts.populate_retry(_tried(1) | {"retry": _tried(1)["retry"] | record}, UUID, 3)

    assert [entry.getMessage() for entry in caplog.records] == logged


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        pytest.param({}, {"limits": {"vcpu": 4}}, id="no retry record"),
        pytest.param(
            {"retry": {"num_attempts": 1}},
            {"retry": {"num_attempts": 1, "hosts": [["h", "n"]]}, "limits": {"vcpu": 4}},
            id="record without hosts",
        ),
        pytest.param({"force_hosts": ["h"]}, {"force_hosts": ["h"]}, id="forced: no limits"),
        pytest.param(
            {"force_hosts": None}, {"force_hosts": None, "limits": {"vcpu": 4}}, id="null force"
        ),
    ],
)
def test_the_chosen_host_is_noted(properties, expected):
    assert request_dicts.populate_filter_properties(properties, HOST) == expected


def test_a_newton_compute_gets_the_recorded_shape():
    recorded = builders.wire("derived-newton-build_and_run_instance-v4.0")["request_spec"]
    image = builders.wire("derived-newton-build_and_run_instance-v4.0")["image"]
    instance = builders.recorded_instance()

    made = request_dicts.build_request_spec(image, [instance])

    del made["instance_type"]["description"]  # came later
    for name in ("image", "num_instances", "instance_type"):
        assert made[name] == recorded[name]
    theirs, ours = recorded["instance_properties"], made["instance_properties"]
    for name in ("system_metadata", "name", "pci_requests", "security_groups"):
        assert ours[name] == theirs[name]
    assert set(theirs) <= set(ours)
