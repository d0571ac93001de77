"""The needs of a request: groups of resources and traits, and what they have in common.

The first group, without a suffix, is the flavor's own; the others come from numbered extra specs
(``resources1:...``) and from ports and devices (``RequestSpec.requested_resources``).
"""

import math
import re
from collections.abc import Set
from typing import Any, Final

from oslo_log import log as logging

from scheduler import objects
from scheduler.claims.amounts import MB_PER_GB
from scheduler.claims.placement.features import Features

LOG = logging.getLogger(__name__)

VCPU, PCPU, MEMORY_MB, DISK_GB = "VCPU", "PCPU", "MEMORY_MB", "DISK_GB"
HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"
REQUIRED, _FORBIDDEN = "required", "forbidden"
NO_POLICY, ISOLATE = "none", "isolate"

#: Resource classes: those that every Placement has, and an operator's own.
_CLASS = re.compile(
    "[VP]CPU|MEMORY_MB|DISK_GB|PCI_DEVICE|SRIOV_NET_VF|IPV4_ADDRESS|[VP]GPU|VGPU_DISPLAY_HEAD|FPGA|"
    "NUMA_(SOCKET|CORE|THREAD|MEMORY_MB)|MEM_ENCRYPTION_CONTEXT|NET_BW_[EI]GR_KILOBIT_PER_SEC|"
    "NET_PACKET_RATE_([EI]GR_)?KILOPACKET_PER_SEC|CUSTOM_.*"
)
_SUFFIX = r"(?P<suffix>[a-zA-Z0-9_-]{0,64})"
_RESOURCE = re.compile(rf"resources{_SUFFIX}:(?P<name>.*)")
#: Any name: Placement refuses one that cannot be, where passing it over would open all hosts.
_TRAIT = re.compile(rf"trait{_SUFFIX}:(?P<name>.*)")
DEDICATED: Final = "dedicated"
_PINNING: Final = (DEDICATED, "mixed")

Group = objects.RequestGroup


def groups_of(spec: Any, *, pinned_as_shared: bool = False) -> list[Group]:
    """The request groups of *spec*, the one without a suffix first.

    With *pinned_as_shared* CPUs for pinning are asked for as VCPU, as reported by compute hosts
    that tell no difference.  An extra spec that cannot be understood is passed over, as in Nova.
    """
    asked = getattr(None if pinned_as_shared else spec.numa_topology, "cells", ())
    cells = [each for each in asked if each.cpu_policy in _PINNING]
    own = Group(use_same_provider=False)
    groups: dict[str | None, Group] = {None: own}
    for key, value in (spec.flavor.extra_specs or {}).items():
        if found := _RESOURCE.fullmatch(key):
            _add_resource(_group(groups, found["suffix"]), key, found["name"], value)
        elif found := _TRAIT.fullmatch(key):
            _add_trait(_group(groups, found["suffix"]), key, found["name"], value)
    if pinned := sum(map(_pinned_cpus, cells)):
        emulator = getattr(spec.numa_topology, "emulator_threads_policy", None)
        own.resources[PCPU] = pinned + (emulator == "isolate")
        if pinned < spec.vcpus:
            own.resources[VCPU] = spec.vcpus - pinned
    for given in spec.requested_resources or ():
        known = _group(groups, given.requester_id)
        known.resources.update(given.resources)
        known.required_traits |= given.required_traits
        known.forbidden_traits |= given.forbidden_traits
        known.aggregates += given.aggregates
        known.forbidden_aggregates |= given.forbidden_aggregates
        known.in_tree = known.in_tree or given.in_tree
    asked = {name for each in groups.values() for name in each.resources}
    _add_own(own, spec, cells, asked)
    for each in groups.values():
        each.resources = {name: amount for name, amount in each.resources.items() if amount}
    return list(groups.values())


def _group(groups: dict[str | None, Group], suffix: str | None) -> Group:
    return groups.setdefault(suffix or None, Group(requester_id=suffix or None))


def _add_own(own: Group, spec: Any, cells: list[Any], asked: Set[str]) -> None:
    """Add to the *own* group what flavor, image and destination want.

    Sizes that are *asked* for already are left out.  Swap counts as disk, a root volume does not.
    *cells* are those with pinned CPUs.
    """
    root_gb = 0 if getattr(spec, "is_bfv", False) else spec.root_gb
    sizes = {
        MEMORY_MB: spec.memory_mb,
        DISK_GB: root_gb + spec.ephemeral_gb + math.ceil(spec.swap / MB_PER_GB),
    }
    if PCPU not in asked:
        sizes[VCPU] = spec.vcpus
    own.resources.update({name: size for name, size in sizes.items() if name not in asked})
    properties = getattr(spec.image, "properties", None)
    own.required_traits.update(getattr(properties, "traits_required", None) or ())
    # Pinned CPUs without siblings are wanted from hosts without them, or with them.
    policies = {each.cpu_thread_policy for each in cells}
    if "isolate" in policies:
        own.forbidden_traits.add(HYPERTHREADING)
    if "require" in policies:
        own.required_traits.add(HYPERTHREADING)
    features = Features(spec)
    own.resources.update(features.resources())
    own.required_traits |= features.traits()
    if (destination := spec.requested_destination) is not None:
        own.aggregates += [each.split(",") for each in destination.aggregates or ()]
        own.forbidden_aggregates.update(destination.forbidden_aggregates or ())


def _pinned_cpus(cell: Any) -> int:
    """Number of pinned CPUs of a pinned *cell*; callers up to Train list them as shared ones."""
    pinned = cell.pcpuset or (cell.cpuset if cell.cpu_policy == DEDICATED else None)
    return len(pinned or ())


def may_share_pinned(spec: Any) -> bool:
    """True when hosts that report all CPUs as VCPU may be asked as well, as Nova does.

    It does for the policy ``dedicated`` only, not where the flavor itself wants PCPU.
    """
    policy = (spec.flavor.extra_specs or {}).get("hw:cpu_policy")
    policy = policy or getattr(getattr(spec.image, "properties", None), "hw_cpu_policy", None)
    return policy == DEDICATED


def _add_resource(group: Group, key: str, name: str, value: str) -> None:
    if not _CLASS.fullmatch(name):
        LOG.warning("Received an invalid ResourceClass '%s' in extra_specs.", name)
        return
    try:
        amount = int(value)
    except ValueError:
        amount = -1
    if amount < 0:
        LOG.warning(
            "Resource amounts must be nonnegative integers. Received '%s' as %s", value, key
        )
    else:
        group.resources[name] = amount


def _add_trait(group: Group, key: str, name: str, value: str) -> None:
    if value == REQUIRED:
        group.required_traits.add(name)
    elif value == _FORBIDDEN:
        group.forbidden_traits.add(name)
    else:
        values = f"{REQUIRED}, {_FORBIDDEN}"
        LOG.warning("Only (%s) traits are supported. Received '%s' as %s", values, value, key)


def policy_of(spec: Any) -> str | None:
    """The group policy, if the flavor names one: ``none`` (may share a provider) or ``isolate``."""
    policy: str | None = (spec.flavor.extra_specs or {}).get("group_policy")
    if policy in (None, NO_POLICY, ISOLATE):
        return policy
    LOG.warning("Invalid group_policy '%s'. Valid values are 'none' and 'isolate'.", policy)
    return None
