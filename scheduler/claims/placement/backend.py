"""Claiming a whole request in Placement: candidates narrow the hosts, all instances or none.

The decision lock is never held while Placement is called.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.backend import (
    Booked,
    Claiming,
    Claims,
    Decided,
    Lost,
    Placed,
    Repeated,
    Request,
    Result,
    Selections,
)
from scheduler.claims.placement.allocations import ATTEMPTS, Allocations, Requester, Unsure
from scheduler.claims.placement.candidates import CandidateQuery, Candidates, fleet_of
from scheduler.claims.placement.client import CANDIDATES_VERSION, Unavailable
from scheduler.hosts.candidates import rows_of_nodes

LOG = logging.getLogger(__name__)

#: Most queries for candidates when others took all that Placement had offered.
QUERIES: Final = 3
#: Time for which a request is left to a worker that may be at it.  Placement does not keep two
#: first claims for an instance apart that come at the same moment: it may say that one has failed,
#: and forget the other with it, which it has granted.
LEFT_SECONDS: Final = 2.0
BUILDING: Final = "building"
_NOTHING: Final = (
    "Got no allocation candidates from the Placement API. This could be due to insufficient "
    "resources or a temporary occurrence as compute nodes start up."
)

Before = dict[str, Any]
"""Allocations of an instance in Placement before a claim."""


class NoCandidates(Exception):
    """Reason why Placement has no host; the caller only learns that there is none."""


class _GivenBefore(Exception):
    """The request was answered before, with *answer*."""

    def __init__(self, answer: Repeated) -> None:
        super().__init__("the request was answered before")
        self.answer = answer


class PlacementClaims(Claims):
    """Claims every answer as allocations before it is given.

    While Placement does not answer, NoValidHost is raised.
    """

    def __init__(
        self,
        query: CandidateQuery,
        allocations: Allocations,
        host_manager: Any,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._query = query
        self._allocations = allocations
        self._host_manager = host_manager
        self._pause = pause

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See the base class: what Placement is asked for."""
        query = self._query.reconfigured(conf)

        def take() -> None:
            self._query = query

        return take

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Claiming]:
        """See the base class."""
        if not request.takes_hosts:
            yield Claiming()
            return
        if request.is_redelivered:
            self._pause(LEFT_SECONDS)
        claiming = _Claiming(self._query, self._allocations, self._host_manager, request)
        try:
            yield claiming
        except Unavailable as error:
            claiming.give_back()
            LOG.warning("Placement is not available: %s", error)
            raise errors.NoValidHost(reason="") from NoCandidates(
                f"Placement is not available: {error}"
            )
        except BaseException:
            claiming.give_back()
            raise


class _Claiming(Claiming):
    """One request on its way: what is claimed for it, and what is known not to go."""

    def __init__(
        self,
        query: CandidateQuery,
        allocations: Allocations,
        host_manager: Any,
        request: Request,
    ) -> None:
        self._query = query
        self._allocations = allocations
        self._host_manager = host_manager
        self._request = request
        self._requester = Requester.from_request(request.context, request.spec)
        self._queries_left = QUERIES
        self._candidates: Candidates | None = None
        #: Per instance the node it was claimed on, and what it had before.
        self._held: dict[str, tuple[str, Before]] = {}
        #: Number of instances of the request that a node takes, where a claim was refused.
        self._room: dict[str, int] = {}

    def offered(self) -> dict[str, int | None]:
        """See the base class; raises Unavailable."""
        if self._candidates is None:
            self._queries_left -= 1
            with self._host_manager.lock:
                fleet = fleet_of(self._host_manager, self._request.spec)
            self._candidates = self._query.candidates(
                self._request.spec, fleet, self._requester.request_id
            )
        if not self._candidates.of_node:
            LOG.info(_NOTHING)
            raise errors.NoValidHost(reason="") from NoCandidates(_NOTHING)
        return {node: self._room.get(node) for node in self._candidates.of_node}

    def book(self, decided: Decided) -> Result:
        """See the base class.

        Raises Unavailable, and AllocationUpdateFailed when another process changes the allocations
        of one of the instances meanwhile.
        """
        result: Result | None = None
        try:
            result = self._claim_all(decided.selections)
        except errors.AllocationUpdateFailed as error:
            result = self.refused(error)
        finally:
            if not isinstance(result, Booked):
                with self._host_manager.lock:
                    for each in reversed(decided.reservations):
                        self._host_manager.reservations.release(each)
        return result

    def refused(self, error: errors.NovaException) -> Lost | Repeated:
        """See the base class.

        What an earlier delivery of this very request took may be all there was, or another worker
        is deciding it just now.
        """
        self.give_back()
        if isinstance(error, errors.NoValidHost) and self._room and self._queries_left:
            self._room.clear()
            self._candidates = None
            return Lost()
        is_at_it = isinstance(error, errors.AllocationUpdateFailed)
        answer = self._given_before(ATTEMPTS if is_at_it else 1, (), is_at_it=is_at_it)
        if answer is None:
            raise error
        return answer

    def give_back(self) -> None:
        """Undo all claims of the request; where that fails, log for which instances."""
        while self._held:
            uuid, (_node, before) = self._held.popitem()
            try:
                self._allocations.give_back(self._requester, uuid, before)
            except Unavailable as error:
                stay = ", ".join([uuid, *self._held])
                LOG.error("Allocations stay that nobody needs, for instances %s: %s", stay, error)
                self._held.clear()

    # --- claiming ------------------------------------------------------------------------

    def _claim_all(self, selections: Selections) -> Result:
        """Claim for every instance; Lost when a node was full, which is noted."""
        names, candidates = self._request.names, self._candidates
        if not names or candidates is None:
            return Booked(selections)  # instances without a name are not claimed for, as in Nova
        candidates.note(each for row in selections for each in row)
        for uuid, (chosen, *_alternates) in zip(names, selections, strict=True):
            node = chosen.compute_node_uuid
            if uuid in self._held and self._held[uuid][0] == node:
                continue
            if uuid in self._held:
                self._allocations.give_back(self._requester, uuid, self._held[uuid][1])
                del self._held[uuid]
            result = self._claim(candidates, uuid, node, selections)
            if result is not None:
                return result
        return Booked(selections)

    def _claim(
        self, candidates: Candidates, uuid: str, node: str, selections: Selections
    ) -> Lost | Repeated | None:
        """Claim *node* for one instance; None if that was granted."""

        def keeps(before: Before) -> bool:
            del before
            if self._is_move(uuid):
                return True
            if not self._held:
                answer = self._given_before(ATTEMPTS, selections)
                if answer is not None:
                    raise _GivenBefore(answer)
            return False

        request = candidates.first(node)
        try:
            before = self._allocations.claim(
                self._requester, uuid, request, CANDIDATES_VERSION, keeps
            )
        except _GivenBefore as given:
            return given.answer
        except Unsure as error:
            self._held[uuid] = (node, error.before)
            raise
        if before is None:
            self._room[node] = Counter(each for each, _before in self._held.values())[node]
            return Lost()
        self._held[uuid] = (node, before)
        return None

    def _is_move(self, uuid: str) -> bool:
        """True when the instance lives on a host already, and so keeps what it has there."""
        with self._host_manager.lock:
            table = self._host_manager.table
            home = table.host_of_instance.get(uuid)
            instance = table.instances.get(home or "", {}).get(uuid)
        return instance is not None and instance.vm_state not in (None, BUILDING)

    # --- an earlier delivery of the request ----------------------------------------------

    def _given_before(
        self, reads: int, selections: Selections | tuple[()], *, is_at_it: bool = False
    ) -> Repeated | None:
        """The hosts claimed for the request by another worker; None if it was not answered.

        Placement knows who an allocation is for, and nothing of requests.  Allocations of an
        instance that is still being built, on a host that the request does not rule out, are those
        of an earlier delivery.  Where only some of its instances have allocations, another worker
        may be at it: they are read *reads* times; also where none has any if it is known that one
        *is_at_it*.  The alternates are those of *selections*, as Placement keeps none.
        """
        names = self._request.names
        for attempt in range(reads if names else 0):
            self._allocations.wait(attempt)
            found: dict[str, Before] = {}
            for uuid in names:
                existing = self._allocations.existing(uuid, self._requester)
                if not existing.get("allocations"):
                    break
                found[uuid] = existing["allocations"]
            if not found and not is_at_it:
                return None
            if len(found) == len(names):
                return self._placed(found, selections)
        return None

    def _placed(
        self, found: Mapping[str, Before], selections: Selections | tuple[()]
    ) -> Repeated | None:
        nodes = {}
        for uuid, allocations in found.items():
            node = None if self._is_move(uuid) else self._node_of(allocations)
            if node is None:
                return None
            nodes[uuid] = node
        alternates = [row[1:] for row in selections] or [[] for _ in found]
        placed = [
            Placed(
                self._request,
                node,
                json.dumps(self._as_offered(node, found[uuid])),
                CANDIDATES_VERSION,
                [each for each in others if each.compute_node_uuid not in nodes.values()],
            )
            for (uuid, node), others in zip(nodes.items(), alternates, strict=True)
        ]
        return Repeated([], placed)

    def _node_of(self, allocations: Mapping[str, Any]) -> str | None:
        """The compute node among the providers, unless the request rules its host out."""
        spec = self._request.spec
        tried = spec.retry.hosts if spec.retry is not None else None
        ruled_out = {each.lower() for each in spec.ignore_hosts or ()}
        ruled_out |= {each.host.lower() for each in tried or ()}
        with self._host_manager.lock:
            table = self._host_manager.table
            for provider in allocations:
                for row in rows_of_nodes(table, [provider]).tolist():
                    return None if table.text(row, "host").lower() in ruled_out else provider
        return None

    def _as_offered(self, node: str, allocations: Mapping[str, Any]) -> dict[str, Any]:
        """The allocations as they were offered, else in the same form."""
        wanted = {uuid: {"resources": each["resources"]} for uuid, each in allocations.items()}
        offered = self._candidates.of_node.get(node, ()) if self._candidates else ()
        for each in offered:
            if each["allocations"] == wanted:
                return each
        return {"allocations": wanted}
