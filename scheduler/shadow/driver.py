"""The driver of a shadow: it decides what another scheduler is asked, and compares.

It decides on what hosts report, as Nova's scheduler does.  What it reserves it gives back at once,
so that servers on their way do not count.
"""

import contextlib
import datetime
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler import errors
from scheduler.claims.backend import Offered, Request, Selections
from scheduler.drivers.filter_scheduler import FilterScheduler
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.table import Key
from scheduler.shadow.comparison import Result, State, reason_of

OUTCOME_SECONDS: Final = 60.0
"""After so long nobody waits for the outcome of a request."""
MOST_WAITING: Final = 32
MOST_STATES: Final = 8
"""Each waits with so many copies of the host table, if hosts go on to report: for 10,000 hosts
of 3 MB each.  Those that wait at the same time share most of them."""
LATER: Final = 1.25
"""Ratio of a request's age to that when its outcome was asked for last: 25 times in a minute."""
DIFFERENCES_KEPT: Final = 1000
NOTHING: Final = Offered({})


@dataclass
class Waiting:
    """A decision whose outcome is not known yet; nothing is *decided* if it was refused."""

    request: Request
    #: The state read last before the request, that of the decision, and those read since.
    states: list[State]
    decided: Sequence[Key] = ()
    began: float = field(default_factory=time.monotonic)
    #: The outcome is not asked for before this age.
    asked_at_seconds: float = 0.0

    @property
    def age_seconds(self) -> float:
        """Seconds since the request."""
        return time.monotonic() - self.began


class ShadowScheduler(FilterScheduler):
    """Decides as the filter driver, claims nothing, and compares with what became of it."""

    tells_of_selections = False
    CLAIMS_HOSTS = False

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self._results: Counter[Result] = Counter(dict.fromkeys(Result, 0))
        self._differences: deque[dict[str, Any]] = deque(maxlen=DIFFERENCES_KEPT)
        self._waiting: list[Waiting] = []

    def shadow_report(self) -> dict[str, Any]:
        """Number of requests by result, and the latest that differ, the newest first."""
        return {
            "results": {result.value: count for result, count in self._results.items()},
            "waiting": len(self._waiting),
            "differences": list(self._differences)[::-1],
        }

    def _answer(self, request: Request, record: DecisionRecord) -> Selections:
        """Decide once, and keep the decision until its outcome is known."""
        manager = self.host_manager
        before = State.of(manager, NOTHING)
        waiting = Waiting(request, [before, before])
        try:
            with self.claims.open(request) as claiming:
                record.placement = claiming.placement
                offered = claiming.offered()
            self.bring_state_up_to_date(request.arrived_at)
            with manager.lock:
                then = State.of(manager, offered)
                waiting.states = [replace(before, nodes=then.nodes), then]
                decided = self.decide(request, record, offered)
                for each in reversed(decided.reservations):
                    manager.reservations.release(each)
        except errors.NoValidHost:
            self._waiting.append(waiting)
            raise
        chosen = [first for first, *_alternates in decided.selections]
        waiting.decided = [(each.service_host, each.nodename) for each in chosen]
        self._waiting.append(waiting)
        return decided.selections

    def look(self, read: Callable[[Request, Mapping[str, str]], list[Key] | None]) -> None:
        """Ask *read* for outcomes, and compare; called again and again by one thread."""
        with contextlib.suppress(errors.StateUnavailable):
            self.host_manager.refresh()
        self._note_reports()
        excess = len(self._waiting) - MOST_WAITING
        for number, each in enumerate(list(self._waiting)):
            outcome = None
            if (age := each.age_seconds) >= each.asked_at_seconds:
                outcome = read(each.request, each.states[0].table.host_of_instance)
                each.asked_at_seconds = age * LATER
            if outcome is not None or age > OUTCOME_SECONDS or number < excess:
                self._waiting.remove(each)
                self._count(each, outcome)

    def _note_reports(self) -> None:
        """Add what hosts report now to the decisions that the other scheduler may still be at."""
        version = self.host_manager.table.version
        young = [each for each in list(self._waiting) if len(each.states) < MOST_STATES]
        if behind := [each for each in young if each.states[-1].table.version != version]:
            state = State.of(self.host_manager, NOTHING)
            for each in behind:
                each.states.append(replace(state, nodes=each.states[1].nodes))

    def compare(self, waiting: Waiting, outcome: Sequence[Key]) -> Result:
        """Compare the decision *waiting* with *outcome*, the hosts that its instances got."""
        if list(waiting.decided) == list(outcome):
            return Result.AGREED
        pairs = enumerate(zip(waiting.decided, outcome, strict=False))
        same = next((number for number, (here, there) in pairs if here != there), 0)
        request = waiting.request
        offered: Offered | None = NOTHING
        with contextlib.suppress(errors.NoValidHost), self.claims.open(request) as claiming:
            offered = claiming.offered()
        with contextlib.suppress(errors.StateUnavailable):
            self.host_manager.refresh()
        states = (*waiting.states, State.of(self.host_manager, offered))
        return reason_of(self.settings, request, same, outcome, states)

    def _count(self, waiting: Waiting, outcome: Sequence[Key] | None) -> None:
        result = Result.OUTCOME_UNKNOWN if outcome is None else self.compare(waiting, outcome)
        self._results[result] += 1
        if result is not Result.AGREED:
            difference = {
                "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "request_id": getattr(waiting.request.context, "request_id", None),
                "instances": ", ".join(waiting.request.names),
                "decided": ", ".join(host for host, _node in waiting.decided),
                "outcome": ", ".join(host for host, _node in outcome or ()),
                "result": result.value,
            }
            self._differences.append(difference)
