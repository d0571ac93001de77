"""Claiming a whole request in Placement: candidates narrow the hosts, all instances or none.

The decision lock is never held while Placement is called.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
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
from scheduler.claims.placement.candidates import (
    AllocationRequest,
    CandidateQuery,
    Candidates,
    fleet_of,
)
from scheduler.claims.placement.client import (
    ATTEMPTS,
    CANDIDATES_VERSION,
    Allocations,
    PlacementClient,
    Requester,
    Unavailable,
    Unsure,
)
from scheduler.hosts.candidates import rows_of_nodes

LOG = logging.getLogger(__name__)

#: Most queries for candidates when others took all that Placement had offered.
QUERIES: Final = 3
#: Time for which a request is left to a worker that may be at it.  Placement does not keep two
#: first claims for an instance apart that come at the same moment: it may say that one has failed,
#: and forget the other with it, which it has granted.
LEFT_SECONDS: Final = 2.0
_NOTHING: Final = (
    "Got no allocation candidates from the Placement API. This could be due to insufficient "
    "resources or a temporary occurrence as compute nodes start up."
)


class NoCandidates(Exception):
    """Reason why Placement has no host; the caller only learns that there is none."""


class _GivenBefore(Exception):
    """The request was answered before: see ``answer``."""

    def __init__(self, answer: Repeated) -> None:
        super().__init__(answer)
        self.answer = answer


class PlacementClaims(Claims):
    """Claims every answer as allocations before it is given.

    While Placement does not answer, NoValidHost is raised.
    """

    def __init__(
        self,
        conf: Any,
        client: PlacementClient,
        host_manager: Any,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.host_manager = host_manager
        self.query = CandidateQuery(conf, client)
        self._pause = pause

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See the base class: what Placement is asked for."""
        query = CandidateQuery(conf, self.client)

        def take() -> None:
            self.query = query

        return take

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[Claiming]:
        """See the base class."""
        if not request.takes_hosts:
            yield Claiming()
            return
        if request.is_redelivered:
            self._pause(LEFT_SECONDS)
        claiming = _Claiming(self, request)
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

    def __init__(self, claims: PlacementClaims, request: Request) -> None:
        self._claims, self._client = claims, claims.client
        self._host_manager = claims.host_manager
        self._request, self._names = request, request.names
        self._requester = Requester.from_request(request.context, request.spec)
        self._queries_left = QUERIES
        self._candidates: Candidates | None = None
        #: Per instance the node it was claimed on, and what it had before.
        self._held: dict[str, tuple[str, Allocations]] = {}
        #: Number of instances of the request that a node takes, where a claim was refused.
        self._room: dict[str, int] = {}

    def offered(self) -> dict[str, int | None]:
        """See the base class; raises Unavailable."""
        if self._candidates is None:
            self._queries_left -= 1
            query, spec = self._claims.query, self._request.spec
            with self._host_manager.lock:
                fleet = fleet_of(self._host_manager, spec)
            self._candidates = query.candidates(spec, fleet, self._requester.request_id)
        if not self._candidates:
            LOG.info(_NOTHING)
            raise errors.NoValidHost(reason="") from NoCandidates(_NOTHING)
        return {node: self._room.get(node) for node in self._candidates}

    def book(self, decided: Decided) -> Result:
        """See the base class.

        Raises Unavailable, and AllocationUpdateFailed when another process changes the allocations
        of one of the instances meanwhile.
        """
        result: Result | None = None
        try:
            result = self._claim_all(decided.selections)
        except _GivenBefore as given:
            result = given.answer
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
                self._client.give_back(self._requester, uuid, before)
            except Unavailable as error:
                stay = ", ".join([uuid, *self._held])
                LOG.error("Allocations stay that nobody needs, for instances %s: %s", stay, error)
                self._held.clear()

    # --- claiming ------------------------------------------------------------------------

    def _claim_all(self, selections: Selections) -> Booked | Lost:
        """Claim for every instance; Lost when a node was full, which is noted."""
        names, candidates = self._names, self._candidates
        if not names or candidates is None:
            return Booked(selections)  # instances without a name are not claimed for, as in Nova
        for each in itertools.chain.from_iterable(selections):
            each.allocation_request = json.dumps(candidates[each.compute_node_uuid][0])
            each.allocation_request_version = CANDIDATES_VERSION
        for uuid, (chosen, *_alternates) in zip(names, selections, strict=True):
            node = chosen.compute_node_uuid
            held, before = self._held.get(uuid, ("", {}))
            if held == node:
                continue
            if held:
                self._client.give_back(self._requester, uuid, before)
                del self._held[uuid]
            if not self._claim(uuid, node, candidates[node][0], selections):
                self._room[node] = [each for each, _before in self._held.values()].count(node)
                return Lost()
        return Booked(selections)

    def _claim(
        self, uuid: str, node: str, request: AllocationRequest, selections: Selections
    ) -> bool:
        """Claim what *request* says on *node*; False if that was refused."""

        def keeps() -> bool:
            if self._is_move(uuid):
                return True
            answer = None if self._held else self._given_before(ATTEMPTS, selections)
            if answer is not None:
                raise _GivenBefore(answer)
            return False

        try:
            before = self._client.claim(self._requester, uuid, request, CANDIDATES_VERSION, keeps)
        except Unsure as error:
            self._held[uuid] = (node, error.before)
            raise
        if before is not None:
            self._held[uuid] = (node, before)
        return before is not None

    def _is_move(self, uuid: str) -> bool:
        """True when the instance lives on a host already, and so keeps what it has there."""
        with self._host_manager.lock:
            return self._host_manager.reservations.home_of(uuid) is not None

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
        for attempt in range(reads if self._names else 0):
            self._client.wait(attempt)
            found: dict[str, Any] = {}
            for uuid in self._names:
                known = self._client.allocations(uuid, self._requester.request_id)
                if not known.get("allocations"):
                    break
                found[uuid] = known["allocations"]
            if not found and not is_at_it:
                return None
            if len(found) == len(self._names):
                return self._placed(found, selections)
        return None

    def _placed(
        self, found: Mapping[str, Any], selections: Selections | tuple[()]
    ) -> Repeated | None:
        nodes = [None if self._is_move(uuid) else self._node_of(found[uuid]) for uuid in found]
        alternates = [row[1:] for row in selections] or [[] for _ in found]
        placed = []
        for node, allocations, others in zip(nodes, found.values(), alternates, strict=True):
            if node is None:
                return None
            request = json.dumps(self._as_offered(node, allocations))
            rest = [each for each in others if each.compute_node_uuid not in nodes]
            placed.append(Placed(self._request, node, request, CANDIDATES_VERSION, rest))
        return Repeated([], placed)

    def _node_of(self, allocations: Mapping[str, Any]) -> str | None:
        """The compute node among the providers, unless the request rules its host out."""
        spec = self._request.spec
        tried = (spec.retry.hosts if spec.retry is not None else None) or ()
        names = [*(spec.ignore_hosts or ()), *(each.host for each in tried)]
        ruled_out = {each.lower() for each in names}
        with self._host_manager.lock:
            table = self._host_manager.table
            for provider in allocations:
                for row in rows_of_nodes(table, [provider]).tolist():
                    return None if table.value(row, "host").lower() in ruled_out else provider
        return None

    def _as_offered(self, node: str, allocations: Mapping[str, Any]) -> dict[str, Any]:
        """The allocations as they were offered, else in the same form."""
        wanted = {uuid: {"resources": each["resources"]} for uuid, each in allocations.items()}
        offered = (self._candidates or {}).get(node, ())
        same = (each for each in offered if each["allocations"] == wanted)
        return next(same, {"allocations": wanted})
