"""The query for allocation candidates: what one instance needs, in Placement's terms.

Needs are groups of resources and traits.  The first group, without a suffix, is the flavor's own;
the others come from numbered extra specs (``resources1:...``) and from ports and devices
(``RequestSpec.requested_resources``).
"""

from __future__ import annotations

import math
import re
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any, Final

from scheduler import errors, objects

VCPU, PCPU, MEMORY_MB, DISK_GB = "VCPU", "PCPU", "MEMORY_MB", "DISK_GB"
MB_PER_GB = 1024
HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"

_SUFFIX = r"(?P<suffix>[a-zA-Z0-9_-]{0,64})"
_RESOURCE = re.compile(rf"resources{_SUFFIX}:(?P<name>[A-Z0-9_]+)")
_TRAIT = re.compile(rf"trait{_SUFFIX}:(?P<name>[A-Z0-9_]+)")
_REQUIRED, _FORBIDDEN = "required", "forbidden"
_PINNING: Final = ("dedicated", "mixed")

Group = objects.RequestGroup


def groups_of(spec: Any, *, pinned_as_shared: bool = False) -> list[Group]:
    """The request groups of *spec*, the one without a suffix first.

    With *pinned_as_shared* CPUs for pinning are asked for as VCPU, from hosts without
    hyperthreading, as reported by compute hosts that tell no difference.  Raises
    InvalidRequest for an extra spec that cannot be understood.
    """
    groups: dict[str | None, Group] = {None: Group(use_same_provider=False)}
    own = groups[None]
    own.resources = _of_sizes(spec)
    for each in spec.requested_resources or ():
        _merge(groups, each)
    _add_extra_specs(groups, spec.flavor.extra_specs or {})
    _add_image_traits(own, spec)
    _add_thread_policy(own, spec)
    _add_destination(own, spec)
    if pinned_as_shared:
        _share_pinned(own)
    own.resources = {name: amount for name, amount in own.resources.items() if amount}
    return list(groups.values())


def policy_of(spec: Any) -> str | None:
    """The group policy, if the flavor names one: ``none`` (may share a provider) or ``isolate``."""
    policy: str | None = (spec.flavor.extra_specs or {}).get("group_policy")
    if policy not in (None, "none", "isolate"):
        raise _wrong("group_policy", f"{policy!r} is neither none nor isolate")
    return policy


def _of_sizes(spec: Any) -> dict[str, int]:
    """The flavor's sizes, zeros among them; swap counts as disk, a root volume does not."""
    root_gb = 0 if getattr(spec, "is_bfv", False) else spec.root_gb
    pinned = _pinned_cpus(spec)
    return {
        VCPU: spec.vcpus - min(pinned, spec.vcpus),
        PCPU: pinned,
        MEMORY_MB: spec.memory_mb,
        DISK_GB: root_gb + spec.ephemeral_gb + math.ceil(spec.swap / MB_PER_GB),
    }


def _pinned_cpus(spec: Any) -> int:
    """CPUs that are to be pinned, that for an isolated emulator thread among them."""
    topology = spec.numa_topology
    if topology is None:
        return 0
    pinned = sum(
        len(set(cell.pcpuset or ()) or set(cell.cpuset or ()))
        for cell in topology.cells
        if cell.cpu_policy in _PINNING
    )
    isolated = getattr(topology, "emulator_threads_policy", None) == "isolate"
    return pinned + (1 if pinned and isolated else 0)


def _share_pinned(own: Group) -> None:
    shared = own.resources.pop(PCPU, 0)
    own.resources[VCPU] = own.resources.get(VCPU, 0) + shared
    own.required_traits = own.required_traits - {HYPERTHREADING}
    own.forbidden_traits = own.forbidden_traits - {HYPERTHREADING}


def _merge(groups: dict[str | None, Group], given: Group) -> None:
    """Add a group that came with the request, to that of the same suffix if there is one."""
    known = groups.get(given.requester_id)
    if known is None:
        groups[given.requester_id] = given.copy()
        return
    known.resources = {**known.resources, **given.resources}
    known.required_traits = {*known.required_traits, *given.required_traits}
    known.forbidden_traits = {*known.forbidden_traits, *given.forbidden_traits}
    known.aggregates = [*known.aggregates, *given.aggregates]
    known.forbidden_aggregates = {*known.forbidden_aggregates, *given.forbidden_aggregates}
    known.in_tree = known.in_tree or given.in_tree


def _add_extra_specs(groups: dict[str | None, Group], extra_specs: dict[str, Any]) -> None:
    for key, value in extra_specs.items():
        if found := _RESOURCE.fullmatch(key):
            group = _group(groups, found["suffix"])
            group.resources = {**group.resources, found["name"]: _amount(key, value)}
        elif found := _TRAIT.fullmatch(key):
            _add_trait(_group(groups, found["suffix"]), key, found["name"], value)


def _group(groups: dict[str | None, Group], suffix: str) -> Group:
    return groups.setdefault(suffix or None, Group(requester_id=suffix or None))


def _amount(key: str, value: Any) -> int:
    try:
        amount = int(value)
    except (TypeError, ValueError):
        amount = -1
    if amount < 0:
        raise _wrong(key, f"{value!r} is not a number of at least 0")
    return amount


def _add_trait(group: Group, key: str, name: str, value: Any) -> None:
    if value == _REQUIRED:
        group.required_traits = {*group.required_traits, name}
    elif value == _FORBIDDEN:
        group.forbidden_traits = {*group.forbidden_traits, name}
    else:
        raise _wrong(key, f"{value!r} is neither {_REQUIRED} nor {_FORBIDDEN}")


def _add_image_traits(own: Group, spec: Any) -> None:
    image = spec.image
    properties = getattr(image, "properties", None) if image is not None else None
    traits = getattr(properties, "traits_required", None) or ()
    own.required_traits = {*own.required_traits, *traits}


def _add_thread_policy(own: Group, spec: Any) -> None:
    """Pinned CPUs without siblings are wanted from hosts without them, or with them."""
    cells = spec.numa_topology.cells if spec.numa_topology is not None else ()
    policies = {cell.cpu_thread_policy for cell in cells if cell.cpu_policy in _PINNING}
    if "isolate" in policies:
        own.forbidden_traits = {*own.forbidden_traits, HYPERTHREADING}
    if "require" in policies:
        own.required_traits = {*own.required_traits, HYPERTHREADING}


def _add_destination(own: Group, spec: Any) -> None:
    destination = spec.requested_destination
    if destination is None:
        return
    for each in destination.aggregates or ():
        own.aggregates = [*own.aggregates, each.split(",")]
    forbidden = destination.forbidden_aggregates or ()
    own.forbidden_aggregates = {*own.forbidden_aggregates, *forbidden}


def _wrong(key: str, reason: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(field=f"flavor.extra_specs[{key}]", reason=reason)


# --- the query string -----------------------------------------------------------------------

#: Policy that Placement must be told when several groups have a suffix and the flavor names none.
POLICY_IF_NONE = "none"


def query_text(
    groups: Sequence[Group],
    *,
    limit: int | None = None,
    root_required: Iterable[str] = (),
    root_forbidden: Iterable[str] = (),
    same_subtree: Iterable[Sequence[str]] = (),
    group_policy: str | None = None,
) -> str:
    """The query string of ``GET /allocation_candidates``, keys in order; *limit* None: no limit."""
    pairs = [pair for group in groups for pair in _of_group(group)]
    if limit is not None:
        pairs.append(("limit", str(limit)))
    if traits := _traits(root_required, root_forbidden):
        pairs.append(("root_required", traits))
    pairs += [("same_subtree", ",".join(each)) for each in same_subtree if each]
    suffixed = [each for each in groups if each.requester_id is not None]
    policy = group_policy or (POLICY_IF_NONE if len(suffixed) > 1 else None)
    if policy is not None and suffixed:
        pairs.append(("group_policy", policy))
    return urllib.parse.urlencode(sorted(pairs))


def _of_group(group: Group) -> list[tuple[str, str]]:
    suffix = group.requester_id or ""
    pairs = []
    resources = ",".join(f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
    if resources:
        pairs.append((f"resources{suffix}", resources))
    if traits := _traits(group.required_traits, group.forbidden_traits):
        pairs.append((f"required{suffix}", traits))
    pairs += [
        (f"member_of{suffix}", "in:" + ",".join(sorted(each))) for each in group.aggregates if each
    ]
    if group.forbidden_aggregates:
        names = ",".join(sorted(group.forbidden_aggregates))
        pairs.append((f"member_of{suffix}", f"!in:{names}"))
    if group.in_tree:
        pairs.append((f"in_tree{suffix}", group.in_tree))
    return pairs


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *(f"!{name}" for name in sorted(forbidden))])
