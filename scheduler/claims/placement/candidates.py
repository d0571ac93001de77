"""Allocation candidates: what is asked of Placement for a request, and what it offers.

Options and the fleet's aggregates add restrictions to what the request itself demands (reference
pages config, section 2, and scheduling, sections 2.5 and 11).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.claims.placement.client import CANDIDATES_VERSION, PlacementClient, Unavailable
from scheduler.claims.placement.query import PCPU, Group, groups_of, policy_of, query_text

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
_TRAIT_KEY, _REQUIRED = "trait:", "required"


AllocationRequest = dict[str, Any]


@dataclass(slots=True)
class Candidates:
    """Per uuid of a compute node the allocation requests that Placement gave for it.

    A compute node is the root of its providers; one that Placement does not name has no offer.
    """

    of_node: dict[str, list[AllocationRequest]] = field(default_factory=dict)
    version: str = CANDIDATES_VERSION

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Candidates:
        """Read the answer to a query; raises Unavailable when it has not Placement's form."""
        candidates = cls()
        try:
            summaries = answer["provider_summaries"]
            for request in answer["allocation_requests"]:
                roots = {summaries[each]["root_provider_uuid"] for each in request["allocations"]}
                for root in roots:
                    candidates.of_node.setdefault(root, []).append(request)
        except (LookupError, TypeError, AttributeError) as error:
            raise Unavailable(f"the candidates have not the expected form: {error!r}") from error
        return candidates

    def extend(self, others: Candidates) -> None:
        """Add what another query gave; what is there already comes first."""
        for node, requests in others.of_node.items():
            self.of_node.setdefault(node, []).extend(requests)

    def first(self, node: str) -> AllocationRequest:
        """The allocation request to claim on *node*."""
        return self.of_node[node][0]

    def note(self, selections: Iterable[objects.Selection]) -> None:
        """Write into *selections* what is, or would be, claimed for each."""
        for each in selections:
            each.allocation_request = json.dumps(self.first(each.compute_node_uuid))
            each.allocation_request_version = self.version


@dataclass(frozen=True, slots=True)
class Fleet:
    """The part of the fleet's state that a query needs, read under the decision lock."""

    aggregates: tuple[Any, ...]
    lowest_version: int
    #: The uuids of the nodes that the request is bound to; None if it is bound to none.
    bound_to: tuple[str, ...] | None


class CandidateQuery:
    """Asks Placement for candidates, as the options say."""

    def __init__(self, conf: cfg.ConfigOpts, client: PlacementClient) -> None:
        self._client = client
        self._options = conf.scheduler
        self._asks_twice = not conf.workarounds.disable_fallback_pcpu_query

    def reconfigured(self, conf: cfg.ConfigOpts) -> CandidateQuery:
        """One that asks the same Placement as *conf* says."""
        return CandidateQuery(conf, self._client)

    def candidates(self, spec: Any, fleet: Fleet, request_id: str | None) -> Candidates:
        """The candidates of one instance of *spec*; raises Unavailable, NoValidHost."""
        found = Candidates()
        for query in self.queries(spec, fleet):
            found.extend(Candidates.from_answer(self._client.candidates(query, request_id)))
        return found

    def queries(self, spec: Any, fleet: Fleet) -> Iterator[str]:
        """The queries for *spec*: one, or two where CPUs for pinning may be reported as others."""
        groups = groups_of(spec)
        yield self._query(spec, groups, fleet)
        if self._asks_twice and PCPU in groups[0].resources:
            yield self._query(spec, groups_of(spec, pinned_as_shared=True), fleet)

    def _query(self, spec: Any, groups: list[Any], fleet: Fleet) -> str:
        own = groups[0]
        restrict(self._options, spec, own, fleet.aggregates)
        limit = self._options.max_placement_results
        if fleet.bound_to is not None:
            if len(fleet.bound_to) == 1:
                own.in_tree = fleet.bound_to[0]
            else:
                limit = None
        hints = spec.scheduler_hints or {}
        if any(hints.get(each) for each in _HINTS_OF_ALL):
            limit = None
        owner = {OWNER_TRAIT} if fleet.lowest_version >= FIRST_WITH_OWNER else set()
        return query_text(
            groups,
            limit=limit,
            root_required=frozenset({*spec.root_required, *owner}),
            root_forbidden=frozenset({*spec.root_forbidden, DISABLED_TRAIT}),
            same_subtree=tuple(spec.same_subtree),
            group_policy=policy_of(spec),
        )


def fleet_of(host_manager: Any, spec: Any) -> Fleet:
    """Read the tables of *host_manager*; the caller holds its lock."""
    table = host_manager.table
    return Fleet(
        aggregates=tuple(host_manager.aggregates),
        lowest_version=table.lowest_service_version,
        bound_to=_bound_to(table, spec),
    )


def _bound_to(table: Any, spec: Any) -> tuple[str, ...] | None:
    destination = spec.requested_destination
    host = getattr(destination, "host", None) if destination is not None else None
    if host:
        hosts, nodes = [host], [destination.node] if destination.node else []
    else:
        hosts, nodes = list(spec.force_hosts or ()), list(spec.force_nodes or ())
    if not hosts and not nodes:
        return None
    rows = sorted(table.rows.values())
    if hosts:
        rows = sorted(table.row_numbers(table.spellings({each.lower() for each in hosts})))
    found = [row for row in rows if not nodes or table.text(row, "nodename") in nodes]
    return tuple(uuid for uuid in (table.text(row, "uuid") for row in found) if uuid)


# --- restrictions by aggregates and images, each with an option of [scheduler] ---------------


def restrict(options: Any, spec: Any, own: Group, aggregates: Sequence[Any]) -> None:
    """Restrict *own*, the group without a suffix; raises NoValidHost for tenants."""
    if options.query_placement_for_availability_zone and spec.availability_zone:
        _require(own, aggregates, lambda each: spec.availability_zone in _zones(each))
    if options.limit_tenants_to_placement_aggregate:
        is_limited = _require(own, aggregates, lambda each: _is_for(each, spec.project_id))
        if not is_limited and options.placement_aggregate_required_for_tenants:
            LOG.warning("Tenant %s has no available aggregates", spec.project_id)
            raise errors.NoValidHost(reason=f"Scheduling failed: {NO_TENANT_HOSTS}")
    disk_format = getattr(spec.image, "disk_format", None)
    if options.query_placement_for_image_type_support and disk_format:
        trait = f"COMPUTE_IMAGE_TYPE_{disk_format.upper()}"
        own.required_traits = {*own.required_traits, trait}
    if options.enable_isolated_aggregate_filtering:
        wanted = set(own.required_traits)
        isolated = {each.uuid for each in aggregates if not _required_traits(each) <= wanted}
        own.forbidden_aggregates = {*own.forbidden_aggregates, *isolated}


def _require(own: Group, aggregates: Iterable[Any], fits: Callable[[Any], bool]) -> bool:
    """Demand one of the aggregates that fit; False, and no demand, if there are none."""
    found = [each.uuid for each in aggregates if fits(each)]
    if found:
        own.aggregates = [*own.aggregates, found]
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
