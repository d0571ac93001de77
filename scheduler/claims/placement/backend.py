"""Claiming a whole request in Placement: candidates narrow the hosts, all instances or none.

The decision lock is never held while Placement is called.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors
from scheduler.claims import backend
from scheduler.claims.placement import client as calls
from scheduler.claims.placement.candidates import AllocationRequest, CandidateQuery
from scheduler.claims.placement.devices import (
    compare_alternates,
    is_compared,
    offers_with_free_devices,
)
from scheduler.claims.placement.memory import Memory
from scheduler.claims.placement.offers import CHOSEN, NoCandidates, Offers
from scheduler.engine.record import PlacementUse
from scheduler.hosts.candidates import rows_of_nodes
from scheduler.threads import in_thread

LOG = logging.getLogger(__name__)

#: Time for which a request is left to a worker that may be at it.  Of two first claims for an
#: instance at the same moment Placement may refuse one, and forget the other, which it has granted.
LEFT_SECONDS: Final = 2.0
GIVE_BACK_SECONDS: Final = 10.0
#: Reads of what another worker may claim, within 3 s: it had written already when it was noticed.
READS: Final = 5
#: Limit of the ids of a project or user in Placement.
LONGEST_OWNER: Final = 255
LOST: Final = backend.Lost(is_race=False)


class _GivenBefore(Exception):
    """The request was answered before: see ``answer``."""

    def __init__(self, answer: backend.Repeated) -> None:
        super().__init__(answer)
        self.answer = answer


class _Held(NamedTuple):
    """Claim for one instance: the *node*, empty if nobody knows; and what it had *before*."""

    node: str
    request: AllocationRequest
    before: calls.Allocations


class PlacementClaims(backend.Claims):
    """Claims every answer as allocations before it is given.

    While Placement does not answer, NoValidHost is raised.
    """

    offers_hosts = True

    def __init__(self, conf: Any, client: calls.PlacementClient, host_manager: Any) -> None:
        self.client = client
        self.host_manager = host_manager
        self.memory = Memory(client, lambda: self.options.placement_memory_seconds)
        self.reconfigured(conf)()

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See the base class: the query and its options, and the filters that look at devices."""
        query = CandidateQuery(conf, self.client)
        names = conf.filter_scheduler[self.host_manager.option_of_filters(conf)]
        filters = frozenset(each.rpartition(".")[2] for each in names)

        def take() -> None:
            self.options, self.query, self.filters = conf.scheduler, query, filters

        return take

    @property
    def learned_at(self) -> float | None:
        return self.memory.looked_at

    def prepare(self) -> None:
        """See the base class: what is shared, and which trees are flat."""
        if self.options.placement_query == CHOSEN:
            self.memory.look(waits=True)

    @contextlib.contextmanager
    def open(self, request: backend.Request) -> Iterator[backend.Claiming]:
        """See the base class; raises InvalidRequest for what cannot be a consumer there."""
        if not request.takes_hosts:
            yield backend.Claiming()
            return
        if request.is_redelivered:
            self.client.pause(LEFT_SECONDS)
        if self.options.placement_query == CHOSEN:
            self.memory.look()
        seconds = self.options.placement_deadline_seconds
        requester = calls.Requester.from_request(request.context, request.spec).within(seconds)
        _check_consumers(request.names, requester)
        use = PlacementUse(requester.calls)
        claiming = _Claiming(self, request, requester, use)
        try:
            claiming.offers.find_segments()
            yield claiming
        except calls.Unavailable as error:
            self.problem = f"Placement is not available: {error}"
            use.is_unanswered = True
            is_late = time.monotonic() >= requester.ends_at
            claiming.give_back()
            LOG.warning("%s", self.problem)
            raise errors.NoValidHost(
                reason=f"Placement did not answer within {seconds} s" if is_late else ""
            ) from NoCandidates(self.problem)
        except BaseException:
            claiming.give_back()
            raise
        finally:
            self.problem = self.problem if use.is_unanswered or not requester.calls else None


def _check_consumers(names: Sequence[str], requester: calls.Requester) -> None:
    for name in names:
        if not uuidutils.is_uuid_like(name):
            raise errors.InvalidRequest(field="instance_uuids", reason=f"{name!r} is not a uuid")
    owners = {"project_id": requester.project_id, "user_id": requester.user_id} if names else {}
    for field, owner in owners.items():
        if not isinstance(owner, str) or not 0 < len(owner) <= LONGEST_OWNER:
            reason = f"{owner!r:.80} is no text of 1 to {LONGEST_OWNER} characters"
            raise errors.InvalidRequest(field=f"RequestSpec.{field}", reason=reason)


class _Claiming(backend.Claiming):
    """One request on its way: what is claimed for it, and what is known not to go."""

    def __init__(
        self,
        claims: PlacementClaims,
        request: backend.Request,
        requester: calls.Requester,
        use: PlacementUse,
    ) -> None:
        self._client, self._host_manager = claims.client, claims.host_manager
        self._memory = claims.memory
        self._filters = claims.filters
        self._request, self._names, self._requester = request, request.names, requester
        self.placement = use
        query, memory, options = claims.query, claims.memory, claims.options
        self.offers = Offers(query, memory, options, request.spec, requester, use)
        #: By instance.
        self._held: dict[str, _Held] = {}

    def offered(self) -> backend.Offered:
        """See the base class; raises Unavailable."""
        return self.offers.offered(self._host_manager)

    def book(self, decided: backend.Decided) -> backend.Result:
        """See the base class.

        Raises Unavailable, and AllocationUpdateFailed when another process changes the allocations
        of one of the instances meanwhile.
        """
        result: backend.Result | None = None
        try:
            result = self._claim_all(decided)
        except _GivenBefore as given:
            result = given.answer
        except (errors.AllocationUpdateFailed, errors.NoValidHost) as error:
            result = self.refused(error)
        finally:
            if not isinstance(result, backend.Booked):
                with self._host_manager.lock:
                    self._host_manager.reservations.release_all(decided.reservations)
        return result

    def refused(self, error: errors.NovaException) -> backend.Lost | backend.Repeated:
        """See the base class.

        What an earlier delivery of this very request took may be all there was, or another worker
        is deciding it just now.
        """
        self.give_back()
        if isinstance(error, errors.NoValidHost) and self.offers.go_on():
            return LOST
        is_at_it = isinstance(error, errors.AllocationUpdateFailed)
        answer = self._given_before(READS if is_at_it else 1, (), is_at_it=is_at_it)
        if answer is None:
            if not is_at_it:
                self.offers.find_causes(self._host_manager)
            raise error
        return answer

    def give_back(self) -> None:
        """Undo all claims of the request, in a time of its own; where that fails, log it."""
        requester = self._requester.within(GIVE_BACK_SECONDS)
        while self._held:
            uuid, held = self._held.popitem()
            try:
                self._client.give_back(requester, uuid, held.before)
            except calls.Unavailable as error:
                stay = ", ".join([uuid, *self._held])
                LOG.error("Allocations stay that nobody needs, for instances %s: %s", stay, error)
                self._held.clear()

    # --- claiming ------------------------------------------------------------------------

    def _wanted(self, decided: backend.Decided) -> dict[str, _Held] | None:
        """Per instance what to claim.

        That is what it holds on the node already, or an offer whose devices are free; any offer
        where no filter looks at devices, as in Nova.  None if there is none, which is noted.
        """
        spec, manager, selections = self._request.spec, self._host_manager, decided.selections
        known, several = self.offers.known, []
        for name, (chosen, *_others) in zip(self._names, selections, strict=True):
            held, node = self._held.get(name), chosen.compute_node_uuid
            several.append([held.request] if held and held.node == node else known[node])
        requests = [first for first, *_others in several]
        if is_compared(spec, self._filters):
            with manager.lock:
                requests = offers_with_free_devices(spec, manager.reservations, decided, several)
        if len(requests) < len(selections):
            self.offers.lacks_devices([row[0] for row in selections[: len(requests) + 1]])
            return None
        self.offers.name(selections, requests)
        return {
            name: _Held(row[0].compute_node_uuid, request, {})
            for name, row, request in zip(self._names, selections, requests, strict=True)
        }

    def _claim_all(self, decided: backend.Decided) -> backend.Booked | backend.Lost:
        """Claim for every instance; Lost when a host or an alternate was refused, or full.

        Alternates are asked about beside the claims.
        """
        offers = self.offers
        if not offers.ask(decided.selections, are_claimed=bool(self._names)):
            return self._lost()
        # Instances without a name are not claimed for, as in Nova.
        if (wanted := self._wanted(decided) if self._names else {}) is None:
            return LOST
        are_granted = in_thread(offers.ask_others)
        try:
            refused = self._claim_each(wanted, decided.selections)
        finally:
            are_granted.exception()  # nobody else may look at the offers until then
        if refused is not None and not offers.is_to_be_listed:
            there = [each.node for each in self._held.values()].count(refused.node)
            is_beaten = not self._held  # else the request itself may have taken it
            offers.note_refused_claim(refused.node, refused.request, there, is_beaten=is_beaten)
            return backend.Lost(is_race=is_beaten)
        if refused is not None or not are_granted.result():
            return self._lost()
        if wanted and is_compared(self._request.spec, self._filters):
            compare_alternates(self._request.spec, self._host_manager, decided, offers.known)
        offers.name(decided.selections, [each.request for each in wanted.values()])
        for one in wanted.values():
            self._memory.note_claim(one.node, one.request)
        return backend.Booked(decided.selections)

    def _lost(self) -> backend.Lost:
        """Placement refused somebody; a list is fetched with nothing claimed."""
        if self.offers.is_to_be_listed:
            self.give_back()
        return LOST

    def _claim_each(
        self, wanted: Mapping[str, _Held], selections: backend.Selections
    ) -> _Held | None:
        """Claim what is *wanted*; return what was refused."""
        self._claim_together(wanted)
        for uuid, one in wanted.items():
            held = self._held.get(uuid)
            if held and held.node == one.node:
                continue
            if held and held.node:
                self._client.give_back(self._requester, uuid, held.before)
                del self._held[uuid]
            if not self._claim(uuid, one, selections):
                return one
        return None

    def _claim_together(self, wanted: Mapping[str, _Held]) -> None:
        """Claim for several instances in one call; what it does not claim is claimed one by one."""
        if len(wanted) == 1 or self._held or not all(map(self._is_new, wanted)):
            return
        requests = {uuid: one.request for uuid, one in wanted.items()}
        is_claimed = self._client.claim_together(self._requester, requests)
        if is_claimed:
            self._held = dict(wanted)
        elif is_claimed is None:  # one by one, allocations are read before they are replaced
            self._held = {uuid: one._replace(node="") for uuid, one in wanted.items()}

    def _claim(self, uuid: str, wanted: _Held, selections: backend.Selections) -> bool:
        """Claim what is *wanted* for an instance; False if that was refused."""

        def keeps() -> bool:
            self._read_state()
            if self._is_move(uuid):
                return True
            answer = None if self._held else self._given_before(calls.ATTEMPTS, selections)
            if answer is not None:
                raise _GivenBefore(answer)
            return False

        requester, is_new = self._requester, self._is_new(uuid) and uuid not in self._held
        try:
            before = self._client.claim(requester, uuid, wanted.request, keeps, is_new=is_new)
        except calls.Unsure as error:
            self._held[uuid] = wanted._replace(before=error.before)
            raise
        if before is not None:
            self._held[uuid] = wanted._replace(before=before)
        return before is not None

    def _is_new(self, uuid: str) -> bool:
        """True when the instance has no allocations, as far as is known without reading them."""
        is_first = self.offers.asks and not self._request.is_redelivered
        return is_first and not self._is_move(uuid)

    def _read_state(self) -> None:
        """Learn where instances are by now: a decision's state may be a second old."""
        if self._host_manager.state_fresh_seconds:
            self._host_manager.refresh()

    def _is_move(self, uuid: str) -> bool:
        """True when the instance lives on a host already, and so keeps what it has there."""
        with self._host_manager.lock:
            return self._host_manager.reservations.home_of(uuid) is not None

    # --- an earlier delivery of the request ----------------------------------------------

    def _given_before(
        self, reads: int, selections: backend.Selections | tuple[()], *, is_at_it: bool = False
    ) -> backend.Repeated | None:
        """The hosts claimed by another worker, alternates of *selections*; None if there are none.

        Placement knows nothing of requests.  Allocations of an instance that is still being built,
        on a host that the request does not rule out, are those of an earlier delivery.  They are
        read *reads* times where only some instances have any, or another worker *is_at_it*.
        """
        for attempt in range(reads if self._names else 0):
            self._client.pause(calls.pause_before(attempt))
            found: dict[str, Any] = {}
            for uuid in self._names:
                known = self._client.allocations(uuid, self._requester)
                if not known.get("allocations"):
                    break
                found[uuid] = known["allocations"]
            if not found and not is_at_it:
                return None
            if len(found) == len(self._names):
                return self._placed(found, selections)
        return None

    def _placed(
        self, found: Mapping[str, Any], selections: backend.Selections | tuple[()]
    ) -> backend.Repeated | None:
        self._read_state()
        nodes = [None if self._is_move(uuid) else self._node_of(found[uuid]) for uuid in found]
        alternates = [row[1:] for row in selections] or [[] for _ in found]
        placed = []
        for node, allocations, others in zip(nodes, found.values(), alternates, strict=True):
            if node is None:
                return None
            request = json.dumps(self._as_offered(node, allocations))
            asked = (each for each in others if each.allocation_request_version)
            rest = [each for each in asked if each.compute_node_uuid not in nodes]
            placed.append(backend.Placed(self._request, node, request, calls.VERSION, rest))
        return backend.Repeated([], placed)

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
        offered = self.offers.known.get(node, ())
        same = (each for each in offered if each["allocations"] == allocations)
        return next(same, {"allocations": allocations})
