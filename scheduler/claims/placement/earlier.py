"""A request on its way, and whether it was answered before, as its allocations show.

Placement knows who an allocation is for, and nothing of requests.  Allocations of an instance
that is still being built, on a host that the request does not rule out, are those of an earlier
delivery.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler import objects
from scheduler.claims.booking import Attempt
from scheduler.claims.ledger import Selections
from scheduler.claims.placement.allocating import Allocating, Requester
from scheduler.claims.placement.client import CANDIDATES_VERSION
from scheduler.claims.placement.offers import Offers

BUILDING: Final = "building"
Before = dict[str, Any]


class Repeated(Exception):
    """The request was answered before; *answer* is what holds."""

    def __init__(self, answer: Selections) -> None:
        super().__init__("the request was answered before")
        self.answer = answer


@dataclass(slots=True)
class Work:
    """One request on its way: what is claimed for it, and what is known not to go."""

    attempt: Attempt
    requester: Requester
    offers: Offers = field(default_factory=Offers)
    #: Per instance the node it was claimed on, and what it had before.
    held: dict[str, tuple[str, Before]] = field(default_factory=dict)
    #: How many instances of the request a node takes, where a claim was refused.
    room: dict[str, int] = field(default_factory=dict)

    def on(self, node: str) -> int:
        """How many instances are claimed on *node*."""
        return Counter(each for each, _before in self.held.values())[node]

    def rooms(self) -> dict[str, int | None]:
        """The nodes offered; for each how many instances it takes, None if that is not known."""
        return {node: self.room.get(node) for node in self.offers.of_node}


class Earlier:
    """Looks for the answer that another worker gave to the same request."""

    def __init__(self, allocating: Allocating, host_manager: Any) -> None:
        self._allocating = allocating
        self._host_manager = host_manager

    def is_move(self, uuid: str) -> bool:
        """Whether the instance lives on a host already, and so keeps what it has there."""
        with self._host_manager.lock:
            table = self._host_manager.table
            home = table.host_of_instance.get(uuid)
            instance = table.instances.get(home or "", {}).get(uuid)
        return instance is not None and instance.vm_state not in (None, BUILDING)

    def answer(
        self,
        work: Work,
        selections: Sequence[list[objects.Selection]],
        waits: int,
        *,
        is_at_it: bool = False,
    ) -> Selections | None:
        """The hosts claimed for the request by somebody else; None if it was not answered.

        Where only some of its instances have allocations, somebody may be at it: *waits* times it
        is looked; also where none has any if it is known that somebody *is_at_it*.  The alternates
        are those of *selections*, as Placement keeps none.
        """
        uuids = work.attempt.instance_uuids
        for attempt in range(waits if uuids else 0):
            self._allocating.wait(attempt)
            found: dict[str, Before] = {}
            for uuid in uuids:
                existing = self._allocating.existing(uuid, work.requester)
                if not existing.get("allocations"):
                    break
                found[uuid] = existing
            if not found and not is_at_it:
                return None
            if len(found) == len(uuids):
                return self._from_allocations(work, found, selections)
        return None

    def _from_allocations(
        self, work: Work, found: Mapping[str, Before], selections: Sequence[list[objects.Selection]]
    ) -> Selections | None:
        chosen = []
        for uuid, before in found.items():
            allocations = before["allocations"]
            selection = None if self.is_move(uuid) else self._on_one_of(work, allocations)
            if selection is None:
                return None
            selection.allocation_request = json.dumps(_as_request(work, selection, allocations))
            selection.allocation_request_version = CANDIDATES_VERSION
            chosen.append(selection)
        nodes = {each.compute_node_uuid for each in chosen}
        alternates: list[Sequence[objects.Selection]] = [row[1:] for row in selections]
        return [
            [one, *(each for each in others if each.compute_node_uuid not in nodes)]
            for one, others in zip(chosen, alternates or [()] * len(chosen), strict=True)
        ]

    @staticmethod
    def _on_one_of(work: Work, allocations: Mapping[str, Any]) -> objects.Selection | None:
        """The host among the providers, unless the request rules it out."""
        for provider in allocations:
            selection = work.attempt.selection_on(provider)
            if selection is not None:
                return None if _is_ruled_out(work.attempt.spec, selection) else selection
        return None


def _as_request(
    work: Work, selection: objects.Selection, allocations: Mapping[str, Any]
) -> dict[str, Any]:
    """The allocations as they were offered, else in the same form."""
    wanted = {uuid: {"resources": each["resources"]} for uuid, each in allocations.items()}
    for offered in work.offers.of_node.get(selection.compute_node_uuid, ()):
        if offered["allocations"] == wanted:
            return offered
    return {"allocations": wanted}


def _is_ruled_out(spec: Any, selection: objects.Selection) -> bool:
    host = selection.service_host.lower()
    if host in {each.lower() for each in spec.ignore_hosts or ()}:
        return True
    tried = spec.retry.hosts if spec.retry is not None else None
    return any(each.host.lower() == host for each in (tried or ()))
