"""A selection of hosts; that columns, documents and values are read right: test_table."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.hosts.candidates import Candidates
from tests.builders import NOW, a_fleet, candidates, names


@pytest.fixture
def hosts():
    return candidates(
        a_fleet(
            {"free_ram_mb": 10, "instances": ["u1", "u2"]},
            {"free_ram_mb": 20, "instances": ["u3"]},
            {"free_ram_mb": 10},
        )
    )


def test_columns_follow_the_selection(hosts):
    left = hosts.take(np.array([2, 1]))
    assert (left.free_ram_mb.tolist(), names(left)) == ([10, 20], ["h3", "h2"])
    assert names(hosts.take(np.array([True, False, True]))) == ["h1", "h3"]
    with pytest.raises(AttributeError, match="free_ram"):
        hosts.free_ram  # noqa: B018


def test_the_view_of_a_host_is_the_same_within_a_decision(hosts):
    [first, *_others] = hosts
    assert hosts.take(np.array([0])).states()[0] is first
    assert names(Candidates.alone(first)) == ["h1"]


def test_no_hosts_need_no_reading(hosts):
    nothing = hosts.take(hosts.everything(False))
    found = (
        nothing.per_document("stats", None),
        nothing.per_value("free_ram_mb", None),
        nothing.per_value("host", None),
        nothing.count_instances(["u1"]),
        nothing.service_up,
    )
    assert [each.tolist() for each in found] == [[]] * 5


@pytest.mark.parametrize(
    ("wanted", "mask"),
    [
        ([], [False, False, False]),
        (["h3", "h1", "h9"], [True, False, True]),
        (["H2", "n2"], [False, False, False]),
    ],
)
def test_hosts_are_named_exactly(hosts, wanted, mask):
    assert hosts.named(wanted).tolist() == mask


@pytest.mark.parametrize(
    ("uuids", "counts"),
    [([], [0, 0, 0]), (["u1", "u2", "u3"], [2, 1, 0]), (["u1", "u1", "U3", "u9"], [1, 0, 0])],
)
def test_instances_are_counted_per_host(hosts, uuids, counts):
    assert hosts.count_instances(uuids).tolist() == counts


@pytest.mark.parametrize(
    ("age", "down_seconds", "up"),
    [(0, 60, True), (60, 60, True), (61, 60, False), (61, 90, True), (-61, 60, False)],
)
def test_liveness_is_judged_at_the_moment_of_the_decision(age, down_seconds, up):
    table = a_fleet({"last_seen": NOW - age}, {"last_seen": NOW, "service": {"forced_down": True}})
    assert candidates(table, NOW, down_seconds).service_up.tolist() == [up, False]
