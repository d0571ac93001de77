"""Allocation candidates: what is asked of Placement for a request, and what it offers.

Options and the fleet's aggregates add restrictions to the needs of the request (reference pages
config, section 2, and scheduling, sections 2.5 and 11).
"""

import itertools
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.placement.client import PlacementClient, Requester, amounts_of, in_form
from scheduler.claims.placement.devices import groups_for_devices
from scheduler.claims.placement.facts import AGGREGATE, FREE, TRAIT, Need
from scheduler.claims.placement.features import Features
from scheduler.claims.placement.needs import (
    ISOLATE,
    NO_POLICY,
    REQUIRED,
    Group,
    groups_of,
    may_share_pinned,
    policy_of,
)
from scheduler.claims.placement.networks import RoutedNetworks

LOG = logging.getLogger(__name__)

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
OWNER_TRAIT: Final = "OWNER_NOVA"
#: The version of nova-compute's service record from which on hosts have the owner's trait.
FIRST_WITH_OWNER: Final = 73
#: Hints that need to see every host, not the first so many.
_HINTS_OF_ALL = ("group", "same_host", "different_host")
ZONE_KEY: Final = "availability_zone"
TENANT_KEY: Final = "filter_tenant_id"
NO_TENANT_HOSTS: Final = "No hosts available for tenant"
#: Begin of the suffixes of groups for classes that are shared.
_SHARED_SUFFIX: Final = "_SHARED"
_TRAIT_KEY: Final = "trait:"
#: Begin of the traits for properties of images; their values follow.
_TRAITS_OF_IMAGES: Final = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
}
#: There are no traits for other emulated architectures, for armv7l and for IOMMUs.  As in Nova an
#: image with one of these asks for none at all.
_EMULATED: Final = frozenset((None, "aarch64", "mipsel", "ppc64le", "s390x", "x86_64"))

#: The formats of images for which there is a trait.
_FORMATS: Final = frozenset(
    ("AKI", "AMI", "ARI", "ISO", "PLOOP", "QCOW2", "RAW", "VDI", "VHD", "VHDX", "VMDK")
)

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
    if destination is not None and (destination.host or destination.node):
        hosts, nodes = ([each] if each else [] for each in (destination.host, destination.node))
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


@dataclass(slots=True)
class Answer:
    """The *candidates*, and the *providers* in their trees as Placement sums them up."""

    candidates: Candidates = field(default_factory=dict)
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: True if there are no other candidates.
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class Wish:
    """One request as Placement is asked for it: groups of needs, and conditions for all."""

    groups: Sequence[Group]
    conditions: Sequence[tuple[str, str]]
    policy: str | None
    limit: int | None
    #: True if a host may be judged without Placement by its room alone.
    is_plain: bool
    #: The most candidates of one host.
    node_limit: int = 1

    def for_fleet(self) -> str:
        """The query for every host that would do, at most ``limit`` candidates if that is set."""
        return self._text(self.groups, self.limit)

    def for_node(self, node: str, shared: Set[str]) -> str | None:
        """The query whether *node* would do; None where only that for the fleet can tell.

        ``in_tree`` rules out the providers that others share: classes that are *shared* go into
        groups of their own without it.
        """
        groups = []
        for group in self.groups:
            separate = sorted(shared & group.resources.keys())
            groups.append(own := group.copy())
            if separate and own.requester_id is not None:
                continue
            if separate and (self.policy == ISOLATE or len(separate) == len(own.resources)):
                return None
            if own.resources:  # only such a group can be bound to a tree
                own.in_tree = own.in_tree or node
            for number, name in enumerate(separate):
                other = Group(requester_id=f"{_SHARED_SUFFIX}{number}")
                other.resources = {name: own.resources.pop(name)}
                other.forbidden_traits = own.forbidden_traits
                other.forbidden_aggregates = own.forbidden_aggregates
                groups.append(other)
        if not any(each.in_tree for each in groups):
            return None
        return self._text(groups, self.node_limit)

    @property
    def amounts(self) -> Counter[str]:
        """The resources of all groups together."""
        return sum((Counter(each.resources) for each in self.groups), Counter[str]())

    def needs(self, shared: Set[str]) -> list[Need]:
        """Conditions that a provider alone in its tree must meet, as far as facts can tell."""
        amounts = self.amounts
        if not shared.isdisjoint(amounts):
            return []
        needs = [
            Need(FREE, [name], f"{{:g}} {name} free, {amount} wanted", amount)
            for name, amount in amounts.items()
        ]
        for group in self.groups:
            wanted, banned = sorted(group.required_traits), sorted(group.forbidden_traits)
            needs += [Need(TRAIT, [name], f"it has no trait {name}") for name in wanted]
            needs += [Need(TRAIT, [e], f"it has the trait {e}", is_ban=True) for e in banned]
            text = "it is not in the aggregates asked for"
            needs += [Need(AGGREGATE, each, text) for each in group.aggregates]
            text, names = "it is in an aggregate that is ruled out", group.forbidden_aggregates
            needs.append(Need(AGGREGATE, names, text, is_ban=True))
        return [*needs, Need(TRAIT, [DISABLED_TRAIT], "it is disabled", is_ban=True)]

    def on_root(self, node: str, shared: Set[str]) -> AllocationRequest | None:
        """All needs as allocations of *node* itself; None if it must be asked."""
        amounts = self.amounts
        if not amounts or not shared.isdisjoint(amounts):
            return None
        mappings = {each.requester_id or "": [node] for each in self.groups if each.resources}
        return {"allocations": {node: {"resources": dict(amounts)}}, "mappings": mappings}

    def _text(self, groups: Sequence[Group], limit: int | None) -> str:
        """The query string, keys in order; several groups with a suffix must have a policy."""
        pairs = [*self.conditions, *itertools.chain.from_iterable(map(_pairs_of, groups))]
        if limit is not None:
            pairs.append(("limit", str(limit)))
        suffixes = sum(each.requester_id is not None for each in groups)
        policy = self.policy or (NO_POLICY if suffixes > 1 else None)
        if policy is not None and suffixes:
            pairs.append(("group_policy", policy))
        return urllib.parse.urlencode(sorted(pairs))


class CandidateQuery:
    """Asks Placement for candidates, as the options say."""

    def __init__(self, conf: cfg.ConfigOpts, client: PlacementClient) -> None:
        self._client = client
        self._networks = RoutedNetworks.from_conf(conf, client)
        self._options = conf.scheduler
        self._asks_twice = not conf.workarounds.disable_fallback_pcpu_query

    def segments(self, spec: Any, requester: Requester) -> list[list[str]]:
        """Aggregates of routed networks, as ``wishes`` takes them; asks Neutron."""
        return [] if self._networks is None else [*self._networks.aggregates(spec, requester)]

    def wishes(self, spec: Any, fleet: Fleet, segments: Iterable[list[str]] = ()) -> list[Wish]:
        """List the needs of one instance of *spec*: one wish, or two, the better one first.

        The second is for hosts that report CPUs for pinning as others.  Raises NoValidHost.
        """
        ways = [False, True] if self._asks_twice and may_share_pinned(spec) else [False]
        found = []
        for pinned_as_shared in ways:
            groups = groups_of(spec, pinned_as_shared=pinned_as_shared)
            groups[0].aggregates += segments
            found.append(self._wish(spec, groups, fleet))
        return found

    def listed(self, wishes: Iterable[Wish], requester: Requester) -> Answer:
        """The candidates in the fleet; raises Unavailable.

        Placement may have the same limit of its own, which holds for queries without one, too.
        """
        found = Answer()
        for wish in wishes:
            count = self._add(found, wish.for_fleet(), requester)
            found.is_all &= count != self._options.max_placement_results
        return found

    @in_form("candidates")
    def asked(
        self, wishes: Iterable[Wish], node: str, shared: Set[str], requester: Requester
    ) -> Answer:
        """The candidates on *node*, none if Placement refuses it; raises Unavailable."""
        found = Answer()
        for wish in wishes:
            query = wish.for_node(node, shared)
            if query is not None:
                self._add(found, query, requester)
            if node in found.candidates:
                found.candidates[node] = [_as_one_group(e) for e in found.candidates[node]]
                break
        return found

    @in_form("candidates")
    def _add(self, found: Answer, query: str, requester: Requester) -> int:
        """Add what *query* gives to what others *found*, which comes first; count it."""
        answer = self._client.candidates(query, requester)
        requests, summaries = answer["allocation_requests"], answer["provider_summaries"]
        for request in requests:
            providers = amounts_of(request["allocations"])
            for root in {summaries[each]["root_provider_uuid"] for each in providers}:
                found.candidates.setdefault(root, []).append(request)
        found.providers.update(summaries)
        return len(requests)

    def _wish(self, spec: Any, groups: Sequence[Group], fleet: Fleet) -> Wish:
        """Raises NoValidHost for tenants without hosts."""
        own, bound_to, hints = groups[0], fleet.bound_to, spec.scheduler_hints or {}
        owner = {OWNER_TRAIT} if fleet.lowest_version >= FIRST_WITH_OWNER else set()
        of_devices = groups_for_devices(spec)
        for each in groups:
            if each.requester_id in of_devices:
                each.required_traits |= owner
        self._restrict(spec, groups, fleet.aggregates)
        policy = policy_of(spec)
        is_plain = policy != ISOLATE and not any(map(_is_choosy, groups))
        wanted = {*spec.root_required, *self._image_traits(spec)}
        wanted.update(Features(spec).root_traits(fleet.lowest_version))
        is_plain &= not (wanted or spec.root_forbidden or any(spec.same_subtree))
        is_limited = bound_to is None
        if bound_to is not None and len(bound_to) == 1:
            own.in_tree, is_limited = bound_to[0], True
        is_limited &= not any(map(hints.get, _HINTS_OF_ALL))
        root = _traits({*wanted, *owner}, {*spec.root_forbidden, DISABLED_TRAIT})
        subtrees = [("same_subtree", ",".join(each)) for each in spec.same_subtree if each]
        conditions = [("root_required", root), *subtrees]
        limit = self._options.max_placement_results if is_limited else None
        of_node = self._options.max_placement_results if of_devices else 1
        return Wish(groups, conditions, policy, limit, is_plain, of_node)

    def _image_traits(self, spec: Any) -> list[str]:
        """The traits of hosts that have what the image wants; none where one does not exist."""
        properties = getattr(spec.image, "properties", None)
        found = {name: getattr(properties, name, None) for name in _TRAITS_OF_IMAGES}
        lacks = getattr(properties, "hw_viommu_model", None) or found["hw_architecture"] == "armv7l"
        lacks = lacks or found["hw_emulation_architecture"] not in _EMULATED
        if lacks or not self._options.image_metadata_prefilter:
            return []
        values = {name: value.replace("-", "_").upper() for name, value in found.items() if value}
        return [f"{_TRAITS_OF_IMAGES[name]}_{value}" for name, value in values.items()]

    def _restrict(self, spec: Any, groups: Sequence[Group], aggregates: Sequence[Any]) -> None:
        """Restrict the first of *groups*, without a suffix; raises NoValidHost for tenants."""
        own, options = groups[0], self._options
        if options.query_placement_for_availability_zone and spec.availability_zone:
            _demand(own, aggregates, lambda each: spec.availability_zone in _zones(each))
        if options.limit_tenants_to_placement_aggregate:
            is_limited = _demand(own, aggregates, lambda each: _is_for(each, spec.project_id))
            if not is_limited and options.placement_aggregate_required_for_tenants:
                LOG.warning("Tenant %s has no available aggregates", spec.project_id)
                raise errors.NoValidHost(reason=f"Scheduling failed: {NO_TENANT_HOSTS}")
        if options.enable_isolated_aggregate_filtering:
            required = set[str]().union(*(each.required_traits for each in groups))
            isolated = [each for each in aggregates if not _required_traits(each) <= required]
            own.forbidden_aggregates.update(_uuids(isolated))
        image = None if getattr(spec, "is_bfv", False) else spec.image
        disk_format = (getattr(image, "disk_format", None) or "").upper()
        if options.query_placement_for_image_type_support and disk_format in _FORMATS:
            own.required_traits.add(f"COMPUTE_IMAGE_TYPE_{disk_format}")


def _is_choosy(group: Group) -> bool:
    traits = group.required_traits or group.forbidden_traits
    return bool(traits or any(group.aggregates) or group.forbidden_aggregates or group.in_tree)


def _as_one_group(request: AllocationRequest) -> AllocationRequest:
    """*request* as if no class had been in a group of its own."""
    mappings = {k: v for k, v in request["mappings"].items() if not k.startswith(_SHARED_SUFFIX)}
    if len(mappings) == len(request["mappings"]):
        return request
    sharing = [each for key, each in request["mappings"].items() if key not in mappings]
    mappings[""] = list(dict.fromkeys(itertools.chain(mappings.get("", ()), *sharing)))
    return {**request, "mappings": mappings}


def _demand(own: Group, aggregates: Iterable[Any], fits: Callable[[Any], bool]) -> bool:
    """Demand one of the aggregates that fit; False, and no demand, if there are none."""
    found = _uuids(filter(fits, aggregates))
    if found:
        own.aggregates.append(found)
    return bool(found)


def _uuids(aggregates: Iterable[Any]) -> list[str]:
    """The uuids of *aggregates*, by which Placement knows them; raises NoValidHost without one."""
    found = {each.uuid: each.name for each in aggregates}
    if None in found:
        reason = f"Aggregate {found[None]} has no uuid, so Placement cannot know its hosts"
        raise errors.NoValidHost(reason=f"Scheduling failed: {reason}")
    return list(found)


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
        if key.startswith(_TRAIT_KEY) and value == REQUIRED
    }


def _pairs_of(group: Group) -> Iterator[tuple[str, str]]:
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
