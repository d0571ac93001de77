"""From a request and what is known of the fleet to what Placement offers for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg

from scheduler.claims.placement.client import PlacementClient
from scheduler.claims.placement.demand import groups_of, has_pinned_cpus, policy_of
from scheduler.claims.placement.offers import Offers
from scheduler.claims.placement.query import Query
from scheduler.claims.placement.restrictions import Restrictions

DISABLED_TRAIT: Final = "COMPUTE_STATUS_DISABLED"
OWNER_TRAIT: Final = "OWNER_NOVA"
#: The version of nova-compute's service record from which on hosts have the owner's trait.
FIRST_WITH_OWNER: Final = 73
#: Hints that need to see every host, not the first so many.
_HINTS_OF_ALL = ("group", "same_host", "different_host")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a query needs to know of the fleet, read under the decision lock."""

    aggregates: tuple[Any, ...]
    lowest_version: int
    #: The uuids of the nodes that the request is bound to; None if it is bound to none.
    bound_to: tuple[str, ...] | None


class Asking:
    """Asks Placement for candidates, as the options say."""

    def __init__(self, conf: cfg.ConfigOpts, client: PlacementClient) -> None:
        self._client = client
        self._limit = conf.scheduler.max_placement_results
        self._restrictions = Restrictions.from_conf(conf)
        self._asks_twice = not conf.workarounds.disable_fallback_pcpu_query

    def reconfigured(self, conf: cfg.ConfigOpts) -> Asking:
        """One that asks the same Placement as *conf* says."""
        return Asking(conf, self._client)

    def offers(self, spec: Any, fleet: Fleet, request_id: str | None) -> Offers:
        """What Placement offers for one instance of *spec*; raises Unavailable, NoValidHost."""
        offers = Offers()
        for query in self.queries(spec, fleet):
            offers.extend(Offers.of_answer(self._client.candidates(query, request_id)))
        return offers

    def queries(self, spec: Any, fleet: Fleet) -> Iterator[str]:
        """The queries for *spec*: one, or two where CPUs for pinning may be reported as others."""
        groups = groups_of(spec)
        yield self._query(spec, groups, fleet)
        if self._asks_twice and has_pinned_cpus(groups):
            yield self._query(spec, groups_of(spec, pinned_as_shared=True), fleet)

    def _query(self, spec: Any, groups: list[Any], fleet: Fleet) -> str:
        own = groups[0]
        self._restrictions.apply(spec, own, fleet.aggregates)
        limit = self._limit
        if fleet.bound_to is not None:
            if len(fleet.bound_to) == 1:
                own.in_tree = fleet.bound_to[0]
            else:
                limit = None
        hints = spec.scheduler_hints or {}
        if any(hints.get(each) for each in _HINTS_OF_ALL):
            limit = None
        owner = {OWNER_TRAIT} if fleet.lowest_version >= FIRST_WITH_OWNER else set()
        return Query(
            groups,
            limit=limit,
            root_required=frozenset({*spec.root_required, *owner}),
            root_forbidden=frozenset({*spec.root_forbidden, DISABLED_TRAIT}),
            same_subtree=tuple(spec.same_subtree),
            group_policy=policy_of(spec),
        ).to_text()


def fleet_of(host_manager: Any, spec: Any) -> Fleet:
    """What the tables of *host_manager* say; the caller holds its lock."""
    table = host_manager.table
    versions = [record.get("version") or 0 for record in table.services.values()]
    return Fleet(
        aggregates=tuple(host_manager.aggregates),
        lowest_version=min(versions, default=0),
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
    names = {each.lower() for each in hosts}
    keys = [
        row
        for (name, node), row in table.rows.items()
        if (not names or name.lower() in names) and (not nodes or node in nodes)
    ]
    return tuple(uuid for uuid in (table.value(row, "uuid") for row in keys) if uuid)
