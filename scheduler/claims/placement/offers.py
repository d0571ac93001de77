"""What Placement offers for a request: allocation requests per compute node, the best first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler import objects
from scheduler.claims.placement.client import CANDIDATES_VERSION, Unavailable

AllocationRequest = dict[str, Any]


@dataclass(slots=True)
class Offers:
    """Per uuid of a compute node the allocation requests that Placement gave for it.

    A compute node is the root of its providers; one that Placement does not name has no offer.
    """

    of_node: dict[str, list[AllocationRequest]] = field(default_factory=dict)
    version: str = CANDIDATES_VERSION

    @classmethod
    def of_answer(cls, answer: Mapping[str, Any]) -> Offers:
        """Read the answer to a query; raises Unavailable when it has not Placement's form."""
        offers = cls()
        try:
            summaries = answer["provider_summaries"]
            for request in answer["allocation_requests"]:
                roots = {summaries[each]["root_provider_uuid"] for each in request["allocations"]}
                for root in roots:
                    offers.of_node.setdefault(root, []).append(request)
        except (LookupError, TypeError, AttributeError) as error:
            raise Unavailable(f"the candidates have not the expected form: {error!r}") from error
        return offers

    def extend(self, others: Offers) -> None:
        """Add what another query gave; what is there already comes first."""
        for node, requests in others.of_node.items():
            self.of_node.setdefault(node, []).extend(requests)

    def first(self, node: str) -> AllocationRequest:
        """What is to be claimed on *node*."""
        return self.of_node[node][0]

    def note(self, selections: Iterable[objects.Selection]) -> None:
        """Write into *selections* what is, or would be, claimed for each."""
        for each in selections:
            each.allocation_request = json.dumps(self.first(each.compute_node_uuid))
            each.allocation_request_version = self.version
