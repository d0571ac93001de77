"""The first line of an explanation: what decided the matter, in one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler import errors

#: Beginning of errors; their own text follows.
_BEGINNINGS: Final = {
    errors.ATTEMPTS_EXHAUSTED: "Attempts exhausted",
    errors.STATE_TOO_OLD: "State too old",
    errors.INVALID_REQUEST: "Invalid request",
}
_HOSTS_SHOWN: Final = 5

Record = Mapping[str, Any]
"""A record in the form of ``answer.to_dict``, or one part of it."""


def sentence(record: Record) -> str:
    """The cause of what *record* says."""
    outcome = record["outcome"]
    if outcome == errors.NO_HOST_FITS:
        return f"No host fits: {_no_host(record)}."
    if outcome == errors.INTERNAL_FAULT:
        return f"Internal fault {record['fault_id'] or ''}: {record['error']}".replace("  ", " ")
    if outcome in _BEGINNINGS:
        text, start = str(record["error"]), _BEGINNINGS[outcome]
        return text if text.startswith(start) else f"{start}: {text}"
    return _success(record)


# --- refusals ----------------------------------------------------------------------------


def _no_host(record: Record) -> str:
    filters = record["filters"]
    if record["refusal"] is not None:
        return _refused(record, record["refusal"])
    if filters and not record["fleet"]:
        return "no compute host is known"
    if record["before_filters"] and (not filters or not filters[0]["start"]):
        return _all_gone_before(record)
    if filters:  # without the numbers: no detail was wanted
        name, start = filters[-1]["name"], filters[-1]["start"]
        reasons = ", ".join(f"{code} {count}" for code, count in filters[-1]["removed"].items())
        return f"{name} removed the last {start} of {record['fleet']} hosts: {reasons}"
    return str(record["error"])


def _all_gone_before(record: Record) -> str:
    causes = [each for each in record["before_filters"] if each["removed"]]
    causes.sort(key=lambda each: (each["note"] is None, -each["removed"]))
    texts = []
    for each in causes:
        wanted = f"{each['wanted']}; " if each["wanted"] else ""
        hosts = "1 host" if each["removed"] == 1 else f"{each['removed']} hosts"
        texts.append(f"{each['note'] or each['text']} ({wanted}{hosts} removed)")
    return "; ".join(texts) or str(record["error"])


def _refused(record: Record, refusal: Record) -> str:
    by_filter: dict[str, list[Record]] = {}
    for finding in refusal["findings"]:
        by_filter.setdefault(finding["filter"], []).append(finding)
    texts, several = [], list(by_filter.values())
    if refusal["index"]:
        texts.append(f"there is room for {refusal['index']} of {record['num_instances']} instances")
    if refusal["held"]:
        texts.append(f"{refusal['held']} hosts pass every filter, but others have claimed them")
    elif several:
        last = several.pop()
        hosts = _hosts(_removed(last), record["fleet"])
        texts.append(f"{last[0]['filter']} removed {hosts}: {_reasons(last)}")
    before = [
        f"{each[0]['filter']} {_removed(each)}" + ("" if place else f" ({_reasons(each)})")
        for place, each in enumerate(sorted(several, key=_removed, reverse=True))
    ]
    before += [f"{cause} {count}" for cause, count in record["never_evaluated"].items()]
    return "; ".join([*texts, f"before that {', '.join(before)}"] if before else texts)


def _hosts(removed: int, fleet: int) -> str:
    if removed != fleet:
        return f"the last {removed} of {fleet} hosts"
    return f"all {removed} hosts" if removed > 1 else "the only host"


def _removed(findings: Sequence[Record]) -> int:
    return sum(each["removed"] for each in findings)


def _reasons(findings: Sequence[Record]) -> str:
    if len(findings) == 1:
        return _reason(findings[0])
    ordered = sorted(findings, key=lambda each: -each["removed"])
    return ", ".join(f"{each['removed']} because {_reason(each)}" for each in ordered)


def _reason(finding: Record) -> str:
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


def _success(record: Record) -> str:
    times = Counter(each["host"] for each in record["chosen"])
    named = [host if count == 1 else f"{host} (x{count})" for host, count in times.items()]
    if not named:
        return "Nothing was asked for."
    more = f" and {len(named) - _HOSTS_SHOWN} more" if len(named) > _HOSTS_SHOWN else ""
    verb = "was" if len(named) == 1 else "were"
    return f"{', '.join(named[:_HOSTS_SHOWN])}{more} {verb} chosen: {_why(record)}."


def _why(record: Record) -> str:
    passed, fleet = record["passed"], record["fleet"]
    if record["claim"]["outcome"] == "repeated" and not record["top"]:
        return "the same request was answered so before"
    if record["filters_skipped"]:
        return "the request forces this, and no filter was asked"
    if not record["considered"]:
        return f"{record['driver'] or 'the driver'} says no more of how"
    if record["driver"] == "ChanceScheduler":
        return f"drawn at random among {passed} hosts"
    if passed == 1:
        return f"the only one of {fleet} hosts that passed the filters"
    return f"{passed} of {fleet} hosts passed the filters, and {_weight(record)}"


def _weight(record: Record) -> str:
    if len(record["chosen"]) > 1:
        return "these had the highest weights, one instance after the other"
    if not record["top"]:
        return "it was the choice among the best"
    first, *others = record["top"]
    weight = f"it has the highest weight, {first['total']:.4g}"
    if not others:
        return weight
    second = others[0]
    if second["total"] > first["total"]:
        return f"it was drawn among the best; {second['host']} weighs {second['total']:.4g}"
    if second["total"] == first["total"]:
        return f"{weight}, as others do ({second['host']})"
    difference, name = max(
        (ours["weighted"] - theirs["weighted"], ours["name"])
        for ours, theirs in zip(first["weighers"], second["weighers"], strict=True)
    )
    return f"{weight}; {name} made the difference to {second['host']} (+{difference:.4g})"
