"""Filters by servers and hosts that a request names.

Reference page filters, sections 6.4 and 6.18 to 6.21.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from oslo_log import log as logging

from scheduler import errors, semantics
from scheduler.filters.base import Condition, HostFilter, Reason, hinted
from scheduler.hosts.candidates import Candidates, has_group

LOG = logging.getLogger(__name__)

PRESENT = Reason("different_host.present", "the host runs a server that is to be avoided")
ABSENT = Reason("same_host.absent", "the host runs none of the servers to be joined")
ELSEWHERE = Reason("affinity.elsewhere", "the server group is on other hosts")
FAR = Reason("cidr.far", "the host's address is not in the network asked for")
FULL = Reason("anti_affinity.full", "the host runs as many servers of the group as it may")
NOT_ISOLATED = Reason("isolated.host_is_not", "the image may only run on isolated hosts")
ISOLATED = Reason("isolated.image_is_not", "the host is kept for isolated images")
TRIED = Reason("retry.tried", "an earlier attempt to build the server there failed")


class DifferentHostFilter(HostFilter):
    """Passes hosts that run none of the instances of hint ``different_host``."""

    run_filter_once_per_request = True
    reasons = (PRESENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """No overlap."""
        yield PRESENT, hosts.count_instances(hinted(request, "different_host")) == 0


class SameHostFilter(HostFilter):
    """Passes hosts that run one of the instances of hint ``same_host``."""

    run_filter_once_per_request = True
    reasons = (ABSENT,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Some overlap."""
        if uuids := hinted(request, "same_host"):
            yield ABSENT, hosts.count_instances(uuids) > 0


class SimpleCIDRAffinityFilter(HostFilter):
    """Passes hosts with an address in the network of hints ``build_near_host_ip`` and ``cidr``."""

    run_filter_once_per_request = True
    reasons = (FAR,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Raises InvalidRequest when the two hints together are no network."""
        if network := network_near(request):
            yield FAR, hosts.per_value("host_ip", within(network))


def network_near(request: Any) -> str:
    """The network of hints ``build_near_host_ip`` and ``cidr``; empty without them."""
    near = request.get_scheduler_hint("build_near_host_ip")
    return f"{near}{request.get_scheduler_hint('cidr', '/24')}" if near else ""


def within(network: str) -> Callable[[str | None], bool]:
    """Test for addresses in *network* (``10.0.0.7/24``; bits of a host do not matter).

    A text that is no address is in no network.  Raises InvalidRequest when *network* is none.
    """
    try:
        wanted = ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        field = "scheduler_hints.build_near_host_ip and cidr"
        raise errors.InvalidRequest(field=field, reason=str(error)) from error

    def test(address: str | None) -> bool:
        try:
            return ipaddress.ip_address(address or "") in wanted
        except ValueError:
            return False

    return test


class ServerGroupAffinityFilter(HostFilter):
    """Passes the hosts of a group with policy ``affinity``, by name; any host for the first."""

    reasons = (ELSEWHERE,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Among the hosts the group is on."""
        if has_group(request, "affinity") and (names := request.instance_group.hosts):
            yield ELSEWHERE, hosts.named(names)


class ServerGroupAntiAffinityFilter(HostFilter):
    """Passes hosts with room for one more member of a group with policy ``anti-affinity``."""

    reasons = (FULL,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Room as the semantics count it; where the instance is, it may stay."""
        if has_group(request, "anti-affinity"):
            yield FULL, semantics.from_conf(self.conf).room_for_member(hosts, request)


class IsolatedHostsFilter(HostFilter):
    """Passes isolated hosts for isolated images, and the others for the others."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (NOT_ISOLATED, ISOLATED)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        options = conf.filter_scheduler
        self.images = frozenset(options.isolated_images)
        self.hosts = tuple(options.isolated_hosts)
        self.restricted = options.restrict_isolated_hosts_to_isolated_images
        self.image_id = semantics.from_conf(conf).image_id

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Isolation is compared exactly; isolated hosts take others unless restricted."""
        isolated = hosts.named(self.hosts)
        if self.images and self.image_id(request.image) in self.images:
            yield NOT_ISOLATED, isolated
        elif self.restricted:
            yield ISOLATED, ~isolated


class RetryFilter(HostFilter):
    """Passes (host, node) pairs that no earlier attempt went to; compared exactly."""

    reasons = (TRIED,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Not among the hosts of ``retry``."""
        retry = request.retry
        if not (retry and retry.hosts):
            return
        tried, rows = (
            [(each.host, each.hypervisor_hostname) for each in retry.hosts],
            hosts.table.rows,
        )
        again = hosts.among([rows[pair] for pair in set(tried) if pair in rows])
        if again.any():
            failing = [(state.host, state.nodename) for state in hosts.take(again).states()]
            LOG.info("Host %s fails.  Previously tried hosts: %s", failing, tried)
        yield TRIED, ~again
