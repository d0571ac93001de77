"""Filters that keep servers together or apart.  Reference page filters, sections 6.18 to 6.20."""

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from scheduler import errors, semantics
from scheduler.filters.base import Condition, HostFilter, Reason, hinted
from scheduler.hosts.candidates import Candidates, has_group

PRESENT = Reason("different_host.present", "the host runs a server that is to be avoided")
ABSENT = Reason("same_host.absent", "the host runs none of the servers to be joined")
ELSEWHERE = Reason("affinity.elsewhere", "the server group is on other hosts")
FAR = Reason("cidr.far", "the host's address is not in the network asked for")
FULL = Reason("anti_affinity.full", "the host runs as many servers of the group as it may")


class DifferentHostFilter(HostFilter):
    """Passes hosts that run none of the instances of hint ``different_host``."""

    run_filter_once_per_request = True
    reasons = (PRESENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        yield PRESENT, hosts.count_instances(hinted(request, "different_host")) == 0


class SameHostFilter(HostFilter):
    """Passes hosts that run one of the instances of hint ``same_host``."""

    run_filter_once_per_request = True
    reasons = (ABSENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        if uuids := hinted(request, "same_host"):
            yield ABSENT, hosts.count_instances(uuids) > 0


def network_near(request: Any) -> str:
    """The network of hints ``build_near_host_ip`` and ``cidr``; empty without them."""
    near = request.get_scheduler_hint("build_near_host_ip")
    return f"{near}{request.get_scheduler_hint('cidr', '/24')}" if near else ""


def within(network: str) -> Callable[[str | None], bool]:
    """Test for addresses in *network* (``10.0.0.7/24``; bits of a host do not matter).

    A text that is no address is in no network.  Raises InvalidRequest when *network* is none.
    """
    with errors.as_invalid("scheduler_hints.build_near_host_ip and cidr", ValueError):
        wanted = ipaddress.ip_network(network, strict=False)

    def test(address: str | None) -> bool:
        try:
            return ipaddress.ip_address(address or "") in wanted
        except ValueError:
            return False

    return test


class SimpleCIDRAffinityFilter(HostFilter):
    """Passes hosts with an address in the network of hints ``build_near_host_ip`` and ``cidr``."""

    run_filter_once_per_request = True
    reasons = (FAR,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Raises InvalidRequest when the two hints together are no network."""
        if network := network_near(request):
            yield FAR, hosts.per_value("host_ip", within(network))


class ServerGroupAffinityFilter(HostFilter):
    """Passes the hosts of a group with policy ``affinity``, by name; any host for the first."""

    reasons = (ELSEWHERE,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        if has_group(request, "affinity") and (names := request.instance_group.hosts):
            yield ELSEWHERE, hosts.named(names)


class ServerGroupAntiAffinityFilter(HostFilter):
    """Passes hosts with room for one more member of a group with policy ``anti-affinity``."""

    reasons = (FULL,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Room as the semantics count it; where the instance is, it may stay."""
        if has_group(request, "anti-affinity"):
            yield FULL, semantics.from_conf(self.conf).room_for_member(hosts, request)
