"""Attempts: (what was tried, what is forced, how many are allowed) -> what comes of it."""

from __future__ import annotations

import logging

import pytest

from conductor_stub import retry
from scheduler import errors

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
        pytest.param({"retry": {"hosts": []}}, 3, 1, id="record without a number"),
        pytest.param({"force_hosts": None, "force_nodes": None}, 3, 1, id="null is not forced"),
        pytest.param({"force_hosts": []}, 3, 1, id="empty is not forced"),
        pytest.param({"force_hosts": ["a", "b"]}, 3, 1, id="two forced hosts keep retrying"),
        pytest.param({"force_hosts": ["a"]}, 3, None, id="one forced host is never retried"),
        pytest.param({"force_nodes": ["a"]}, 3, None, id="one forced node is never retried"),
        pytest.param({}, 1, None, id="one attempt allowed is never retried"),
    ],
)
def test_an_allowed_attempt_is_counted(properties, max_attempts, attempts_after):
    counted = retry.populate_retry(properties, UUID, max_attempts)

    if attempts_after is None:
        assert "retry" not in counted
        assert retry.attempts(counted) == 1
    else:
        assert retry.attempts(counted) == attempts_after


@pytest.mark.parametrize(
    ("attempts", "max_attempts", "reason"),
    [(3, 3, "no space"), (2, 2, None), (7, 3, "boom")],
)
def test_one_attempt_too_many_is_an_error(attempts, max_attempts, reason):
    extra = {"exc_reason": reason} if reason else {}

    with pytest.raises(errors.MaxRetriesExceeded) as raised:
        retry.populate_retry(_tried(attempts, **extra), UUID, max_attempts)

    assert str(raised.value) == (
        f"Exceeded maximum number of retries. Exceeded max scheduling attempts {max_attempts} "
        f"for instance {UUID}. Last exception: {reason}"
    )


def test_the_reason_of_the_last_failure_is_dropped_and_its_traceback_kept():
    given = _tried(1, exc=["Traceback ..."], exc_reason="no space")

    counted = retry.populate_retry(given, UUID, 3)

    assert counted["retry"] == {
        "num_attempts": 2,
        "hosts": [["cmp1", "n1"]],
        "exc": ["Traceback ..."],
    }
    assert given == _tried(1, exc=["Traceback ..."], exc_reason="no space")


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
        retry.populate_retry(_tried(1) | {"retry": _tried(1)["retry"] | record}, UUID, 3)

    assert [entry.getMessage() for entry in caplog.records] == logged


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        pytest.param({}, {"limits": {"vcpu": 4}}, id="no retry record"),
        pytest.param(
            {"retry": {"num_attempts": 1, "hosts": []}},
            {"retry": {"num_attempts": 1, "hosts": [["h", "n"]]}, "limits": {"vcpu": 4}},
            id="host noted",
        ),
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
    assert retry.populate_filter_properties(properties, "h", "n", {"vcpu": 4}) == expected


def test_instances_of_a_batch_do_not_share_their_hosts():
    shared = {"retry": {"num_attempts": 1, "hosts": []}}

    first = retry.populate_filter_properties(shared, "a", None, {})
    second = retry.populate_filter_properties(shared, "b", "n", {})

    assert first["retry"]["hosts"] == [["a", None]]
    assert second["retry"]["hosts"] == [["b", "n"]]
