"""The first line of an explanation: what decided the matter, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler import errors

#: How errors begin; their own text follows.
_BEGINNINGS: Final = {
    errors.ATTEMPTS_EXHAUSTED: "Attempts exhausted",
    errors.STATE_TOO_OLD: "State too old",
    errors.INVALID_REQUEST: "Invalid request",
}
_HOSTS_SHOWN: Final = 5


def of(told: Mapping[str, Any]) -> str:
    """The sentence for a record in the form of ``form.to_dict``."""
    outcome = told["outcome"]
    if outcome == errors.NO_HOST_FITS:
        return f"No host fits: {_no_host(told)}."
    if outcome == errors.INTERNAL_FAULT:
        return f"Internal fault {told['fault_id'] or ''}: {told['error']}".replace("  ", " ")
    if outcome in _BEGINNINGS:
        text = str(told["error"])
        start = _BEGINNINGS[outcome]
        return text if text.startswith(start) else f"{start}: {text}"
    return _success(told)


# --- refusals ----------------------------------------------------------------------------


def _no_host(told: Mapping[str, Any]) -> str:
    refusal = told["refusal"]
    if refusal is not None:
        return _refused(told, refusal)
    filters = told["filters"]
    if filters and not told["fleet"]:
        return "no compute host is known"
    if told["before_filters"] and (not filters or not filters[0]["start"]):
        return _before(told)
    if filters:  # without the numbers: no detail was wanted
        last = filters[-1]
        reasons = ", ".join(f"{code} {count}" for code, count in last["removed"].items())
        return (
            f"{last['name']} removed the last {last['start']} of {told['fleet']} hosts: {reasons}"
        )
    return str(told["error"])


def _before(told: Mapping[str, Any]) -> str:
    """All hosts were gone before any filter was asked."""
    causes = [each for each in told["before_filters"] if each["removed"]]
    causes.sort(key=lambda each: (each["note"] is None, -each["removed"]))
    said = [
        f"{each['note'] or each['text']} ({_wanted(each)}{_count(each['removed'])})"
        for each in causes
    ]
    return "; ".join(said) or str(told["error"])


def _wanted(each: Mapping[str, Any]) -> str:
    return f"{each['wanted']}; " if each["wanted"] else ""


def _count(number: int) -> str:
    return f"{number} host removed" if number == 1 else f"{number} hosts removed"


def _refused(told: Mapping[str, Any], refusal: Mapping[str, Any]) -> str:
    by_filter: dict[str, list[Mapping[str, Any]]] = {}
    for finding in refusal["findings"]:
        by_filter.setdefault(finding["filter"], []).append(finding)
    said = [_instance(told, refusal)] if refusal["index"] else []
    if refusal["held"]:
        said.append(f"{refusal['held']} hosts pass every filter, but others have claimed them")
    names = list(by_filter)
    if names and not refusal["held"]:
        last = by_filter[names.pop()]
        said.append(f"{last[0]['filter']} removed {_of(told, _removed(last))}: {_reasons(last)}")
    said += _others(told, [by_filter[name] for name in names])
    return "; ".join(said)


def _instance(told: Mapping[str, Any], refusal: Mapping[str, Any]) -> str:
    placed = refusal["index"]
    return f"there is room for {placed} of {told['num_instances']} instances"


def _of(told: Mapping[str, Any], removed: int) -> str:
    """How many of how many."""
    if removed == told["fleet"]:
        return f"all {removed} hosts" if removed > 1 else "the only host"
    return f"the last {removed} of {told['fleet']} hosts"


def _removed(findings: Sequence[Mapping[str, Any]]) -> int:
    return sum(each["removed"] for each in findings)


def _others(told: Mapping[str, Any], filters: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """What came before: the filter that removed most with its numbers, the others by count."""
    ordered = sorted(filters, key=_removed, reverse=True)
    said = [
        f"{each[0]['filter']} {_removed(each)}" + (f" ({_reasons(each)})" if not place else "")
        for place, each in enumerate(ordered)
    ]
    said += [f"{cause} {count}" for cause, count in told["never_evaluated"].items()]
    return [f"before that {', '.join(said)}"] if said else []


def _reasons(findings: Sequence[Mapping[str, Any]]) -> str:
    if len(findings) == 1:
        return _reason(findings[0])
    ordered = sorted(findings, key=lambda each: -each["removed"])
    return ", ".join(f"{each['removed']} because {_reason(each)}" for each in ordered)


def _reason(finding: Mapping[str, Any]) -> str:
    if finding["note"]:
        return f"{finding['wanted']} wanted, and {finding['note']}"
    if not finding["examples"] or finding["wanted"] is None:
        return str(finding["text"])
    closest = finding["examples"][0]
    if closest["missing"] is None:
        has = f"{closest['host']}: {closest['found']}"
        return f"{finding['text']} ({finding['wanted']} wanted; {has})"
    which = "the closest" if finding["removed"] > 1 else "the host"
    return f"{finding['wanted']} wanted, {which} ({closest['host']}) has {closest['found']}"


# --- successes ---------------------------------------------------------------------------


def _success(told: Mapping[str, Any]) -> str:
    times = Counter(each["host"] for each in told["chosen"])
    named = [host if count == 1 else f"{host} (x{count})" for host, count in times.items()]
    shown = ", ".join(named[:_HOSTS_SHOWN])
    more = f" and {len(named) - _HOSTS_SHOWN} more" if len(named) > _HOSTS_SHOWN else ""
    if not named:
        return "Nothing was asked for."
    verb = "was" if len(named) == 1 else "were"
    return f"{shown}{more} {verb} chosen: {_why(told)}."


def _why(told: Mapping[str, Any]) -> str:
    if told["claim"]["outcome"] == "repeated" and not told["top"]:
        return "the same request was answered so before"
    if told["filters_skipped"]:
        return "the request forces this, and no filter was asked"
    if not told["considered"]:
        return f"{told['driver'] or 'the driver'} says no more of how"
    if told["driver"] == "ChanceScheduler":
        return f"drawn at random among {told['passed']} hosts"
    of_all = f"{told['passed']} of {told['fleet']} hosts passed the filters"
    if told["passed"] == 1:
        return f"the only one of {told['fleet']} hosts that passed the filters"
    return f"{of_all}, and {_weight(told)}"


def _weight(told: Mapping[str, Any]) -> str:
    top = told["top"]
    if len(told["chosen"]) > 1:
        return "these had the highest weights, one instance after the other"
    if not top:
        return "it was the choice among the best"
    weight = f"it has the highest weight, {top[0]['total']:.4g}"
    if len(top) == 1:
        return weight
    second = top[1]
    if second["total"] > top[0]["total"]:
        return f"it was drawn among the best; {second['host']} weighs {second['total']:.4g}"
    if second["total"] == top[0]["total"]:
        return f"{weight}, as others do ({second['host']})"
    name, difference = _difference(top[0], second)
    return f"{weight}; {name} made the difference to {second['host']} (+{difference:.4g})"


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, float]:
    """The weigher that speaks most for the first of two hosts, and by how much."""
    apart = [
        (ours["weighted"] - theirs["weighted"], ours["name"])
        for ours, theirs in zip(first["weighers"], second["weighers"], strict=True)
    ]
    difference, name = max(apart)
    return name, difference
