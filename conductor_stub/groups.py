"""Server groups: is the policy enforceable, and where do the members run already?

Reference page conductor, section 3.4.  What is found goes into the filter properties, from which
the request for the scheduler is made, or into the request itself where there is one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, objects

LOG = logging.getLogger(__name__)

_ALL_WEIGHERS = frozenset(("nova.scheduler.weights.all_weighers", "scheduler.weights.all_weighers"))
_AFFINITY_MODULES = ("nova.scheduler.weights.affinity", "scheduler.weights.affinity")

FILTER_OF_POLICY = {
    "affinity": "ServerGroupAffinityFilter",
    "anti-affinity": "ServerGroupAntiAffinityFilter",
}
WEIGHER_OF_POLICY = {
    "soft-affinity": "ServerGroupSoftAffinityWeigher",
    "soft-anti-affinity": "ServerGroupSoftAntiAffinityWeigher",
}


class PolicySupport:
    """Which group policies this configuration can enforce; judged once, at construction."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._missing = {
            policy: needed
            for policy, needed in (FILTER_OF_POLICY | WEIGHER_OF_POLICY).items()
            if not _is_enabled(conf, needed)
        }

    def check(self, policies: list[str]) -> bool:
        """Whether any of *policies* concerns the scheduler.

        Raises UnsupportedPolicyException when one does and what enforces it is switched off.
        """
        concerned = [
            policy for policy in FILTER_OF_POLICY | WEIGHER_OF_POLICY if policy in policies
        ]
        for policy in concerned:
            if policy in self._missing:
                reason = f"{self._missing[policy]} not configured"
                LOG.error("ServerGroup policy is not supported: %s", reason)
                raise errors.UnsupportedPolicyException(reason=reason)
        return bool(concerned)


def _is_enabled(conf: cfg.ConfigOpts, needed: str) -> bool:
    if needed in FILTER_OF_POLICY.values():
        return needed in conf.filter_scheduler.enabled_filters
    paths = {f"{module}.{needed}" for module in _AFFINITY_MODULES}
    return bool((paths | _ALL_WEIGHERS) & set(conf.filter_scheduler.weight_classes))


def policies_of(group: objects.InstanceGroup) -> list[str]:
    """The policies of *group*: today's single one, or the list of older releases."""
    return [group.policy] if group.policy else list(group.policies or [])


def setup_instance_group(
    properties: Mapping[str, Any],
    group: objects.InstanceGroup,
    member_hosts: list[str],
    support: PolicySupport,
) -> dict[str, Any]:
    """The filter properties with *group* in them, whose members run on *member_hosts*.

    Hosts that the properties name already are kept.  A policy other than the four adds nothing.
    Raises UnsupportedPolicyException.
    """
    updated = copy.deepcopy(dict(properties))
    if not support.check(policies_of(group)):
        return updated
    updated["group_updated"] = True
    updated["group_hosts"] = sorted({*(updated.get("group_hosts") or ()), *member_hosts})
    updated["group_policies"] = policies_of(group)
    updated["group_members"] = list(group.members or [])
    updated["group_uuid"] = group.uuid
    return updated


def fill_in_group(
    specs: Iterable[objects.RequestSpec],
    group: objects.InstanceGroup,
    member_hosts: list[str],
    support: PolicySupport,
) -> None:
    """Put *group* into *specs*, whose members run on *member_hosts*: the form of today.

    Hosts that a request names already are kept, as is a group whose policy is not one of the
    four.  Raises UnsupportedPolicyException.
    """
    if not support.check(policies_of(group)):
        return
    for spec in specs:
        known = (spec.instance_group.hosts if spec.instance_group else None) or []
        spec.instance_group = group.copy()
        spec.instance_group.hosts = sorted({*known, *member_hosts})
