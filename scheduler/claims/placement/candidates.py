"""Allocation candidates: what is asked of Placement for a request, and what it offers.

Needs are groups of resources and traits.  The first group, without a suffix, is the flavor's own;
the others come from numbered extra specs (``resources1:...``) and from ports and devices
(``RequestSpec.requested_resources``).  Options and the fleet's aggregates add restrictions
(reference pages config, section 2, and scheduling, sections 2.5 and 11).
"""

from __future__ import annotations

import math
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.claims.placement.client import PlacementClient, Unavailable

LOG = logging.getLogger(__name__)

VCPU, PCPU, MEMORY_MB, DISK_GB = "VCPU", "PCPU", "MEMORY_MB", "DISK_GB"
MB_PER_GB = 1024
HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"
DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
OWNER_TRAIT: Final = "OWNER_NOVA"
#: The version of nova-compute's service record from which on hosts have the owner's trait.
FIRST_WITH_OWNER: Final = 73
#: Hints that need to see every host, not the first so many.
_HINTS_OF_ALL = ("group", "same_host", "different_host")
ZONE_KEY: Final = "availability_zone"
TENANT_KEY: Final = "filter_tenant_id"
NO_TENANT_HOSTS: Final = "No hosts available for tenant"
#: Policy that Placement must be told when several groups have a suffix and the flavor names none.
POLICY_IF_NONE = "none"

_SUFFIX = r"(?P<suffix>[a-zA-Z0-9_-]{0,64})"
_RESOURCE = re.compile(rf"resources{_SUFFIX}:(?P<name>[A-Z0-9_]+)")
_TRAIT = re.compile(rf"trait{_SUFFIX}:(?P<name>[A-Z0-9_]+)")
_TRAIT_KEY, _REQUIRED, _FORBIDDEN = "trait:", "required", "forbidden"
_PINNING: Final = ("dedicated", "mixed")

Group = objects.RequestGroup
AllocationRequest = dict[str, Any]
Candidates = dict[str, list[AllocationRequest]]
"""Per uuid of a compute node, the root of its providers, the allocation requests for it."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The part of the fleet's state that a query needs, read under the decision lock."""

    aggregates: tuple[Any, ...]
    lowest_version: int
    #: The uuids of the nodes that the request is bound to; None if it is bound to none.
    bound_to: tuple[str, ...] | None


def fleet_of(host_manager: Any, spec: Any) -> Fleet:
    """Read the tables of *host_manager*; the caller holds its lock."""
    table, destination = host_manager.table, spec.requested_destination
    aggregates, lowest = tuple(host_manager.aggregates), table.lowest_service_version
    if host := getattr(destination, "host", None):
        hosts, nodes = [host], [destination.node] if destination.node else []
    else:
        hosts, nodes = list(spec.force_hosts or ()), list(spec.force_nodes or ())
    if not hosts and not nodes:
        return Fleet(aggregates, lowest, None)
    rows = sorted(table.rows.values())
    if hosts:
        rows = sorted(table.row_numbers(table.spellings({each.lower() for each in hosts})))
    found = [row for row in rows if not nodes or table.value(row, "nodename") in nodes]
    uuids = [table.value(row, "uuid") for row in found]
    return Fleet(aggregates, lowest, tuple(filter(None, uuids)))


class CandidateQuery:
    """Asks Placement for candidates, as the options say."""

    def __init__(self, conf: cfg.ConfigOpts, client: PlacementClient) -> None:
        self._client = client
        self._options = conf.scheduler
        self._asks_twice = not conf.workarounds.disable_fallback_pcpu_query

    def candidates(self, spec: Any, fleet: Fleet, request_id: str | None) -> Candidates:
        """The candidates of one instance of *spec*; raises Unavailable, NoValidHost."""
        found: Candidates = {}
        for query in self.queries(spec, fleet):
            answer = self._client.candidates(query, request_id)
            try:
                _add(found, answer["allocation_requests"], answer["provider_summaries"])
            except (LookupError, TypeError, AttributeError) as error:
                text = f"the candidates have not the expected form: {error!r}"
                raise Unavailable(text) from error
        return found

    def queries(self, spec: Any, fleet: Fleet) -> Iterator[str]:
        """The queries for *spec*: one, or two where CPUs for pinning may be reported as others."""
        groups = _groups_of(spec)
        yield self._query(spec, groups, fleet)
        if self._asks_twice and PCPU in groups[0].resources:
            yield self._query(spec, _groups_of(spec, pinned_as_shared=True), fleet)

    def _query(self, spec: Any, groups: Sequence[Group], fleet: Fleet) -> str:
        """The query string of ``GET /allocation_candidates``, keys in order."""
        own, bound_to, hints = groups[0], fleet.bound_to, spec.scheduler_hints or {}
        self._restrict(spec, own, fleet.aggregates)
        is_limited = bound_to is None
        if bound_to is not None and len(bound_to) == 1:
            own.in_tree, is_limited = bound_to[0], True
        pairs = [pair for group in groups for pair in _pairs_of(group)]
        if is_limited and not any(map(hints.get, _HINTS_OF_ALL)):
            pairs.append(("limit", str(self._options.max_placement_results)))
        owner = {OWNER_TRAIT} if fleet.lowest_version >= FIRST_WITH_OWNER else set()
        root = _traits({*spec.root_required, *owner}, {*spec.root_forbidden, DISABLED_TRAIT})
        pairs.append(("root_required", root))
        pairs += [("same_subtree", ",".join(each)) for each in spec.same_subtree if each]
        suffixed = [each for each in groups if each.requester_id is not None]
        policy = _policy_of(spec) or (POLICY_IF_NONE if len(suffixed) > 1 else None)
        if policy is not None and suffixed:
            pairs.append(("group_policy", policy))
        return urllib.parse.urlencode(sorted(pairs))

    def _restrict(self, spec: Any, own: Group, aggregates: Sequence[Any]) -> None:
        """Restrict *own*, the group without a suffix; raises NoValidHost for tenants."""
        options = self._options
        if options.query_placement_for_availability_zone and spec.availability_zone:
            _demand(own, aggregates, lambda each: spec.availability_zone in _zones(each))
        if options.limit_tenants_to_placement_aggregate:
            is_limited = _demand(own, aggregates, lambda each: _is_for(each, spec.project_id))
            if not is_limited and options.placement_aggregate_required_for_tenants:
                LOG.warning("Tenant %s has no available aggregates", spec.project_id)
                raise errors.NoValidHost(reason=f"Scheduling failed: {NO_TENANT_HOSTS}")
        disk_format = getattr(spec.image, "disk_format", None)
        if options.query_placement_for_image_type_support and disk_format:
            own.required_traits.add(f"COMPUTE_IMAGE_TYPE_{disk_format.upper()}")
        if options.enable_isolated_aggregate_filtering:
            isolated = [e for e in aggregates if not _required_traits(e) <= own.required_traits]
            own.forbidden_aggregates.update(each.uuid for each in isolated)


def _add(found: Candidates, requests: Iterable[AllocationRequest], summaries: Any) -> None:
    """Add what a query gave to what was *found* by others, which comes first."""
    for request in requests:
        for root in {summaries[each]["root_provider_uuid"] for each in request["allocations"]}:
            found.setdefault(root, []).append(request)


# --- needs ----------------------------------------------------------------------------------


def _groups_of(spec: Any, *, pinned_as_shared: bool = False) -> list[Group]:
    """The request groups of *spec*, the one without a suffix first.

    With *pinned_as_shared* CPUs for pinning are asked for as VCPU, from hosts without
    hyperthreading, as reported by compute hosts that tell no difference.  Raises
    InvalidRequest for an extra spec that cannot be understood.
    """
    groups: dict[str | None, Group] = {None: _own_group(spec)}
    for given in spec.requested_resources or ():
        known = _group(groups, given.requester_id)
        known.resources.update(given.resources)
        known.required_traits |= given.required_traits
        known.forbidden_traits |= given.forbidden_traits
        known.aggregates += given.aggregates
        known.forbidden_aggregates |= given.forbidden_aggregates
        known.in_tree = known.in_tree or given.in_tree
    for key, value in (spec.flavor.extra_specs or {}).items():
        if found := _RESOURCE.fullmatch(key):
            _group(groups, found["suffix"]).resources[found["name"]] = _amount(key, value)
        elif found := _TRAIT.fullmatch(key):
            _add_trait(_group(groups, found["suffix"]), key, found["name"], value)
    own = groups[None]
    if pinned_as_shared:
        own.resources[VCPU] = own.resources.get(VCPU, 0) + own.resources.pop(PCPU, 0)
        own.required_traits.discard(HYPERTHREADING)
        own.forbidden_traits.discard(HYPERTHREADING)
    own.resources = {name: amount for name, amount in own.resources.items() if amount}
    return list(groups.values())


def _group(groups: dict[str | None, Group], suffix: str | None) -> Group:
    return groups.setdefault(suffix or None, Group(requester_id=suffix or None))


def _own_group(spec: Any) -> Group:
    """The group of flavor, image and destination, with resources that are zero among them.

    Swap counts as disk, a root volume does not.
    """
    own, cells = Group(use_same_provider=False), _pinned_cells(spec)
    pinned = sum(len(set(each.pcpuset or ()) or set(each.cpuset or ())) for each in cells)
    if pinned and getattr(spec.numa_topology, "emulator_threads_policy", None) == "isolate":
        pinned += 1
    root_gb = 0 if getattr(spec, "is_bfv", False) else spec.root_gb
    own.resources = {
        VCPU: spec.vcpus - min(pinned, spec.vcpus),
        PCPU: pinned,
        MEMORY_MB: spec.memory_mb,
        DISK_GB: root_gb + spec.ephemeral_gb + math.ceil(spec.swap / MB_PER_GB),
    }
    properties = getattr(spec.image, "properties", None)
    own.required_traits.update(getattr(properties, "traits_required", None) or ())
    # Pinned CPUs without siblings are wanted from hosts without them, or with them.
    policies = {each.cpu_thread_policy for each in cells}
    if "isolate" in policies:
        own.forbidden_traits.add(HYPERTHREADING)
    if "require" in policies:
        own.required_traits.add(HYPERTHREADING)
    if (destination := spec.requested_destination) is not None:
        own.aggregates = [each.split(",") for each in destination.aggregates or ()]
        own.forbidden_aggregates.update(destination.forbidden_aggregates or ())
    return own


def _pinned_cells(spec: Any) -> list[Any]:
    cells = spec.numa_topology.cells if spec.numa_topology is not None else ()
    return [each for each in cells if each.cpu_policy in _PINNING]


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
        group.required_traits.add(name)
    elif value == _FORBIDDEN:
        group.forbidden_traits.add(name)
    else:
        raise _wrong(key, f"{value!r} is neither {_REQUIRED} nor {_FORBIDDEN}")


def _policy_of(spec: Any) -> str | None:
    """The group policy, if the flavor names one: ``none`` (may share a provider) or ``isolate``."""
    policy: str | None = (spec.flavor.extra_specs or {}).get("group_policy")
    if policy not in (None, "none", "isolate"):
        raise _wrong("group_policy", f"{policy!r} is neither none nor isolate")
    return policy


def _wrong(key: str, reason: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(field=f"flavor.extra_specs[{key}]", reason=reason)


# --- aggregates -----------------------------------------------------------------------------


def _demand(own: Group, aggregates: Iterable[Any], fits: Callable[[Any], bool]) -> bool:
    """Demand one of the aggregates that fit; False, and no demand, if there are none."""
    found = [each.uuid for each in aggregates if fits(each)]
    if found:
        own.aggregates.append(found)
    return bool(found)


def _zones(aggregate: Any) -> list[str]:
    names = (aggregate.metadata or {}).get(ZONE_KEY, "")
    return [name.strip() for name in names.split(",")]


def _is_for(aggregate: Any, project_id: str | None) -> bool:
    metadata = (aggregate.metadata or {}).items()
    return any(key.startswith(TENANT_KEY) and value == project_id for key, value in metadata)


def _required_traits(aggregate: Any) -> set[str]:
    return {
        key.removeprefix(_TRAIT_KEY)
        for key, value in (aggregate.metadata or {}).items()
        if key.startswith(_TRAIT_KEY) and value == _REQUIRED
    }


# --- the query string -----------------------------------------------------------------------


def _pairs_of(group: Group) -> Iterator[tuple[str, str]]:
    """Key and value of what *group* asks for."""
    suffix = group.requester_id or ""
    if group.resources:
        amounts = [f"{name}:{amount}" for name, amount in sorted(group.resources.items())]
        yield f"resources{suffix}", ",".join(amounts)
    if traits := _traits(group.required_traits, group.forbidden_traits):
        yield f"required{suffix}", traits
    for each in filter(None, group.aggregates):
        yield f"member_of{suffix}", "in:" + ",".join(sorted(each))
    if group.forbidden_aggregates:
        yield f"member_of{suffix}", "!in:" + ",".join(sorted(group.forbidden_aggregates))
    if group.in_tree:
        yield f"in_tree{suffix}", group.in_tree


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *(f"!{name}" for name in sorted(forbidden))])
