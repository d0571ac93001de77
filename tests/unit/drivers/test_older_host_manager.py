"""A driver of Newton's kind takes the steps of a decision one by one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scheduler.drivers.older_host_manager import OlderHostManager
from scheduler.drivers.settings import configured_policy
from scheduler.hosts.host_manager import HostManager
from tests.builders import NOW, a_conf, a_fleet, a_request

CONTEXT = object()


class Fleet:
    """A host manager of a table."""

    option_of_filters = staticmethod(HostManager.option_of_filters)

    def __init__(self, *hosts: dict[str, Any]) -> None:
        self.table = a_fleet(*hosts)
        self.lock = threading.RLock()
        self.refreshed = 0

    def clock(self) -> float:
        return NOW

    def refresh(self, arrived_at: float | None = None) -> None:
        self.refreshed += 1


@pytest.fixture
def manager() -> OlderHostManager:
    conf = a_conf(
        enabled_filters=["ComputeFilter", "RamFilter"],
        weight_classes=["nova.scheduler.weights.ram.RAMWeigher"],
    )
    own = Fleet({"free_ram_mb": 1024}, {"last_seen": NOW - 61}, {}, {"free_ram_mb": -2000})
    return OlderHostManager(own, configured_policy(conf, own))


def names(states: list[Any]) -> list[str]:
    return [state.host for state in states]


def test_all_hosts(manager: OlderHostManager) -> None:
    assert names(manager.get_all_host_states(CONTEXT)) == ["h1", "h2", "h3", "h4"]
    assert manager.refreshed == 1


def test_filtered_with_limits(manager: OlderHostManager) -> None:
    hosts = manager.get_all_host_states(CONTEXT)
    left = manager.get_filtered_hosts(hosts, a_request())

    assert names(left) == ["h1", "h3"]
    assert [state.limits for state in left] == [{"memory_mb": 6144.0}] * 2


def test_weighed(manager: OlderHostManager) -> None:
    hosts = manager.get_all_host_states(CONTEXT)
    weighed = manager.get_weighed_hosts(hosts, a_request())

    assert names([each.obj for each in weighed])[:2] == ["h2", "h3"]
    assert [each.to_dict() for each in weighed][0] == {"weight": 1.0, "host": "h2"}


def test_nothing_stays_nothing(manager: OlderHostManager) -> None:
    assert manager.get_filtered_hosts([], a_request()) == []
    assert manager.get_weighed_hosts([], a_request()) == []


def test_what_is_picked_is_taken(manager: OlderHostManager) -> None:
    """Newton's loop: choose, consume, filter what is left."""
    request, hosts, chosen = a_request(), manager.get_all_host_states(CONTEXT), []
    for index in range(20):
        hosts = manager.get_filtered_hosts(hosts, request, index=index)
        if not hosts:
            break
        best = manager.get_weighed_hosts(hosts, request)[0].obj
        best.consume_from_request(request)
        chosen.append(best.host)

    # 1.5 times 4096 MB: h3 has room for 12 and h1, of which 3072 MB are taken, for 6.
    assert (chosen.count("h3"), chosen.count("h1"), len(chosen)) == (12, 6, 18)
