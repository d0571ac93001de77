"""Filters that keep servers together or apart.  Reference page filters, sections 6.18 and 6.20."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

PRESENT = Reason("different_host.present", "the host runs a server that is to be avoided")
ABSENT = Reason("same_host.absent", "the host runs none of the servers to be joined")
ELSEWHERE = Reason("affinity.elsewhere", "the server group is on other hosts")
FULL = Reason("anti_affinity.full", "the host runs as many servers of the group as it may")


def _hinted(request: Any, hint: str) -> list[str]:
    """The instances that *hint* names; empty hints name none."""
    named = request.get_scheduler_hint(hint)
    if not named:
        return []
    return [named] if isinstance(named, str) else named


class DifferentHostFilter(HostFilter):
    """Passes hosts that run none of the instances of hint ``different_host``."""

    run_filter_once_per_request = True
    reasons = (PRESENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """No overlap."""
        if uuids := _hinted(request, "different_host"):
            yield PRESENT, hosts.count_instances(uuids) == 0


class SameHostFilter(HostFilter):
    """Passes hosts that run one of the instances of hint ``same_host``."""

    run_filter_once_per_request = True
    reasons = (ABSENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Some overlap."""
        if uuids := _hinted(request, "same_host"):
            yield ABSENT, hosts.count_instances(uuids) > 0


class ServerGroupAffinityFilter(HostFilter):
    """Passes the hosts of a group with policy ``affinity``, by name; any host for the first."""

    policy: ClassVar[str] = "affinity"
    reasons = (ELSEWHERE,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Among the hosts the group is on."""
        group = request.instance_group
        if group is not None and group.policy == self.policy and group.hosts:
            yield ELSEWHERE, hosts.named(group.hosts)


class ServerGroupAntiAffinityFilter(HostFilter):
    """Passes hosts with room for one more member of a group with policy ``anti-affinity``."""

    policy: ClassVar[str] = "anti-affinity"
    reasons = (FULL,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Fewer members than the group's rule allows; where the instance is, it may stay."""
        group = request.instance_group
        if group is None or group.policy != self.policy:
            return
        most = group.rules.get("max_server_per_host", 1)
        own = hosts.count_instances([request.instance_uuid]) > 0
        yield FULL, own | (hosts.count_instances(group.members or ()) < most)
