"""Booking a whole request in Placement: candidates narrow the hosts, all instances or none.

The decision lock is held to decide, and never while Placement is talked to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.booking import Attempt, Booking
from scheduler.claims.ledger import Decided, Outcome, Selections
from scheduler.claims.placement.allocating import ATTEMPTS, Allocating, Requester, Unsure
from scheduler.claims.placement.asking import Asking, fleet_of
from scheduler.claims.placement.client import Unavailable
from scheduler.claims.placement.earlier import Earlier, Repeated, Work

LOG = logging.getLogger(__name__)

#: How often Placement is asked anew when others took all that it had offered.
LOOKS: Final = 3
#: How long a request that another worker may be at is left to it.  Placement does not keep two
#: first claims for an instance apart that come at the same moment: it may say that one has failed,
#: and forget the other with it, which it has granted.
LEFT_SECONDS: Final = 2.0
_NOTHING: Final = (
    "Got no allocation candidates from the Placement API. This could be due to insufficient "
    "resources or a temporary occurrence as compute nodes start up."
)


class NoCandidates(Exception):
    """Why Placement has no host; the caller only learns that there is none."""


class PlacementBooking(Booking):
    """Claims every answer as allocations before it is given."""

    def __init__(self, asking: Asking, allocating: Allocating, host_manager: Any) -> None:
        self._asking = asking
        self._allocating = allocating
        self._host_manager = host_manager
        self._earlier = Earlier(allocating, host_manager)
        self.pause: Callable[[float], None] = time.sleep

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See the base class: what Placement is asked for."""
        asking = self._asking.reconfigured(conf)

        def take() -> None:
            self._asking = asking

        return take

    def answer(self, attempt: Attempt) -> Selections:
        """The answer to one request, claimed; or the one that was claimed for it before.

        Raises NoValidHost, also while Placement does not answer; AllocationUpdateFailed when
        another process changes the allocations of one of the instances meanwhile.
        """
        attempt.refresh()
        if not attempt.needs_claims:
            return attempt.decide().selections
        work = Work(attempt, Requester.of(attempt.context, attempt.spec))
        if attempt.is_redelivered:
            self.pause(LEFT_SECONDS)
        try:
            return self._claimed(work)
        except Unavailable as error:
            self._give_back(work)
            LOG.warning("Placement is not available: %s", error)
            raise errors.NoValidHost(reason="") from NoCandidates(
                f"Placement is not available: {error}"
            )
        except BaseException:
            self._give_back(work)
            raise

    def _claimed(self, work: Work) -> Selections:
        try:
            return self._with_looks(work)
        except Repeated as repeated:
            work.attempt.note_claim(Outcome.REPEATED.value)
            return repeated.answer
        except (errors.NoValidHost, errors.AllocationUpdateFailed) as error:
            # What an earlier delivery of this very request took may be all there was, or it is
            # being decided by another worker just now.
            self._give_back(work)
            is_at_it = isinstance(error, errors.AllocationUpdateFailed)
            answer = self._earlier.answer(work, (), ATTEMPTS if is_at_it else 1, is_at_it=is_at_it)
            if answer is None:
                raise
            work.attempt.note_claim(Outcome.REPEATED.value)
            return answer

    def _with_looks(self, work: Work) -> Selections:
        for looks_left in reversed(range(LOOKS)):
            try:
                return self._from_fresh_offers(work)
            except errors.NoValidHost:
                if not (looks_left and work.room):
                    raise
                self._give_back(work)
                work.room.clear()
        raise AssertionError("the last look raises")

    def _from_fresh_offers(self, work: Work) -> Selections:
        spec = work.attempt.spec
        with self._host_manager.lock:
            fleet = fleet_of(self._host_manager, spec)
        work.offers = self._asking.offers(spec, fleet, work.requester.request_id)
        if not work.offers.of_node:
            LOG.info(_NOTHING)
            raise errors.NoValidHost(reason="") from NoCandidates(_NOTHING)
        while True:
            decided = work.attempt.decide(offered=work.rooms())
            try:
                if self._try(work, decided.selections):
                    work.attempt.note_claim(Outcome.BOOKED.value)
                    return decided.selections
            except BaseException:
                self._undo(decided)
                raise
            work.attempt.note_claim(Outcome.LOST.value)
            self._undo(decided)

    def _undo(self, decided: Decided) -> None:
        with self._host_manager.lock:
            for pick in reversed(decided.picks):
                self._host_manager.books.undo(pick)

    def _try(self, work: Work, selections: Selections) -> bool:
        """Claim for every instance; False when a node was full, which is noted."""
        uuids = work.attempt.instance_uuids
        if not uuids:
            return True  # instances without a name are not claimed for, as in Nova
        work.offers.note(each for row in selections for each in row)
        for uuid, (chosen, *_alternates) in zip(uuids, selections, strict=True):
            node = chosen.compute_node_uuid
            if uuid in work.held and work.held[uuid][0] == node:
                continue
            if uuid in work.held:
                self._allocating.give_back(work.requester, uuid, work.held[uuid][1])
                del work.held[uuid]
            if not self._claim(work, uuid, node, selections):
                work.room[node] = work.on(node)
                return False
        return True

    def _claim(self, work: Work, uuid: str, node: str, selections: Selections) -> bool:
        def keeps(before: dict[str, Any]) -> bool:
            del before
            if self._earlier.is_move(uuid):
                return True
            if not work.held:
                answer = self._earlier.answer(work, selections, ATTEMPTS)
                if answer is not None:
                    raise Repeated(answer)
            return False

        request, version = work.offers.first(node), work.offers.version
        try:
            before = self._allocating.claim(work.requester, uuid, request, version, keeps)
        except Unsure as error:
            work.held[uuid] = (node, error.before)
            raise
        if before is None:
            return False
        work.held[uuid] = (node, before)
        return True

    def _give_back(self, work: Work) -> None:
        """Undo all claims of the request; where that fails, say for which instances."""
        while work.held:
            uuid, (_node, before) = work.held.popitem()
            try:
                self._allocating.give_back(work.requester, uuid, before)
            except Unavailable as error:
                left = ", ".join([uuid, *work.held])
                LOG.error("Allocations stay that nobody needs, for instances %s: %s", left, error)
                work.held.clear()
