"""Kinds of subjects, by the name that ``run`` of a workload's settings has."""

from collections.abc import Callable, Mapping

from benchmarks.sample import Subject
from benchmarks.session import Session
from benchmarks.subjects.arrivals import Arrivals
from benchmarks.subjects.bus import Calls
from benchmarks.subjects.cloud import BareClaims, CloudCalls
from benchmarks.subjects.decision import EngineDecisions, RowByRowDecisions
from benchmarks.subjects.nova import NovaDecisions
from benchmarks.subjects.planning import FreedHosts
from benchmarks.subjects.refresh import Refreshes
from benchmarks.subjects.start import Starts
from benchmarks.workload import Settings, WorkloadError

KINDS: Mapping[str, Callable[[Settings, Session], Subject]] = {
    "decision": EngineDecisions,
    "row-by-row": RowByRowDecisions,
    "refresh": Refreshes,
    "calls": Calls,
    "arrivals": Arrivals,
    "start": Starts,
    "nova": NovaDecisions,
    "plan": FreedHosts,
    "cloud": CloudCalls,
    "bare": BareClaims,
}


def make(settings: Settings, session: Session) -> Subject:
    """The subject that *settings* describe; WorkloadError if there is no such kind."""
    kind = KINDS.get(settings["run"])
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise WorkloadError(f"run: {settings['run']!r} is none of {known}")
    return kind(settings, session)
