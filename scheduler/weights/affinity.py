"""Draw the servers of a group together or apart where possible (sections 7.3 and 7.5)."""

from typing import Any, ClassVar

import numpy as np
from oslo_log import log as logging

from scheduler import semantics
from scheduler.hosts.candidates import Candidates, has_group
from scheduler.weights.base import HostWeigher

LOG = logging.getLogger(__name__)


class _SoftAffinityWeigher(HostWeigher):
    """Number of the group's members on the host, over all its nodes, under one policy."""

    policy: ClassVar[str]
    sign: ClassVar[int]

    def configured_multiplier(self, conf: Any) -> float:
        """The option's value; what is less than the semantics allow is raised to that."""
        value = super().configured_multiplier(conf)
        least = semantics.from_conf(conf).least_soft_multiplier
        if value < 0:
            LOG.warning(
                "Option [filter_scheduler] %s is %s, below 0; %s is used. Only with [scheduler] "
                "semantics = newton it means the opposite policy.",
                self.multiplier_option,
                value,
                max(value, least),
            )
        return max(value, least)

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Members on the host, or their negative; 0 for groups of another policy."""
        if not has_group(request, self.policy):
            return hosts.constant(0, np.int64)
        return self.sign * hosts.count_instances(request.instance_group.members or ())


class ServerGroupSoftAffinityWeigher(_SoftAffinityWeigher):
    """More members are better, with policy ``soft-affinity``."""

    policy = "soft-affinity"
    sign = 1
    multiplier_option = "soft_affinity_weight_multiplier"


class ServerGroupSoftAntiAffinityWeigher(_SoftAffinityWeigher):
    """Fewer members are better, with policy ``soft-anti-affinity``."""

    policy = "soft-anti-affinity"
    sign = -1
    multiplier_option = "soft_anti_affinity_weight_multiplier"
