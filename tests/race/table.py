"""The race in one table: what was promised, what was found."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.race.plan import Plan
from tests.race.run import Outcome
from tests.world import machine, results

SHOWN: Final = 5
MAY_RESCHEDULE: Final = 0.001

Row = tuple[str, str, str, bool | None]
"""What, promised, found, and whether the promise was kept (None: nothing was promised)."""


def render(plan: Plan, outcome: Outcome) -> str:
    """The table as text, then examples of what is wrong."""
    lines = [
        f"{plan.daemons} daemons of {plan.workers} workers, claims = {plan.claims}, "
        f"{plan.callers} callers, {plan.hosts} hosts of {plan.host_mb} MiB",
        machine.sentence(machine.notes()),
        "",
    ]
    marks = {True: "kept", False: "BROKEN", None: ""}
    cells = [(*words, marks[is_kept]) for *words, is_kept in rows(plan, outcome)]
    lines += [results.table(("what", "promised", "found", ""), cells)]
    verdict = (
        f"Without claims: {outcome.double_bookings} answers promised a host beyond its memory, "
        f"{outcome.counts['rescheduled']} servers were sent back."
    )
    if plan.claims != "none":
        wrong = [what for what, *_words, is_kept in rows(plan, outcome) if is_kept is False]
        verdict = f"BROKEN: {'; '.join(wrong)}." if wrong else "Every promise was kept."
    lines += ["", verdict]
    for name, several in {**outcome.wrong, "tracebacks": outcome.tracebacks}.items():
        lines += [f"\n{name}:", *(f"  {each}" for each in several[:SHOWN])] if several else []
    return "\n".join(lines)


def broken(plan: Plan, outcome: Outcome) -> bool:
    """Whether any promise was broken; without claims none was made."""
    return any(is_kept is False for *_words, is_kept in rows(plan, outcome))


def rows(plan: Plan, outcome: Outcome) -> list[Row]:
    """What the table says."""
    doubled, counts = outcome.double_bookings, outcome.counts
    share = counts["rescheduled"] / max(1, counts["builds"])
    worst = f", by up to {outcome.worst_mb} MiB" if doubled else ""
    beyond = "answers that promise a host beyond its memory"
    sent_back = "servers that a host sent back as full"
    text = f"{counts['rescheduled']} ({100 * share:.2f} %)"
    promises: list[Row] = [
        *((what, "0", str(len(found)), not found) for what, found in outcome.wrong.items()),
        (beyond, "0", f"{doubled}{worst}", not doubled),
        (sent_back, "≤ 0.1 %", text, share <= MAY_RESCHEDULE),
    ]
    if plan.claims == "none":
        promises = [(what, "", found, None) for what, _promised, found, _kept in promises]
    tracebacks = ("tracebacks in the logs", "", str(len(outcome.tracebacks)), None)
    return [*_course(plan, outcome), *promises, tracebacks]


def _course(plan: Plan, outcome: Outcome) -> list[Row]:
    counts, requests = outcome.counts, outcome.requests
    ends = Counter(each.failure or "answered" for each in requests)
    rate = len(requests) / outcome.took_seconds
    facts = {
        "requests": f"{len(requests)} in {outcome.took_seconds:.0f} s, {rate:.0f}/s",
        "answered, refused, timed out": f"{ends['answered']}, {ends['NoValidHost']}, "
        f"{ends['timeout']}",
        "answers lost on the way": f"{counts['answers that did not come in time']}, "
        f"{counts['answers that came too late']} came too late",
        "schedulers killed": f"{counts['kills']}, {counts['daemons killed']} of them with all "
        "their workers",
        "fullest": f"{100 * outcome.most_mb / plan.fleet_mb:.2f} % of {plan.fleet_mb} MiB; "
        f"{counts['times full to the last MiB']} times full, {counts['times empty again']} times "
        "empty again",
        "builds": f"{counts['builds']}, {counts['builds that failed']} failed, "
        f"{counts['alternates taken']} went to alternates; {counts['deleted']} servers deleted",
    }
    return [(what, "", found, None) for what, found in facts.items()]
