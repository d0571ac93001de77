"""Sentences made of a record: the cause, the fate of single hosts, time and circumstances."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler import errors
from scheduler.explain.refusal import THEN

#: Beginning of errors; their own text follows.
_BEGINNINGS: Final = {
    errors.ATTEMPTS_EXHAUSTED: "Attempts exhausted",
    errors.STATE_TOO_OLD: "State too old",
    errors.INVALID_REQUEST: "Invalid request",
}
_HOSTS_SHOWN: Final = 5

Record = Mapping[str, Any]
"""A record in the form of ``answer.to_dict``, or one part of it."""


def cause(record: Record) -> str:
    """The first line of an explanation, which names what decided the matter."""
    outcome = record["outcome"]
    if outcome == errors.NO_HOST_FITS:
        return f"No host fits: {_no_host(record)}{_no_room(record)}."
    if outcome == errors.INTERNAL_FAULT:
        return f"Internal fault {record['fault_id'] or ''}: {record['error']}".replace("  ", " ")
    if outcome in _BEGINNINGS:
        text, start = str(record["error"]), _BEGINNINGS[outcome]
        return text if text.startswith(start) else f"{start}: {text}"
    return _success(record)


def _no_host(record: Record) -> str:
    filters = record["filters"]
    if record["refusal"] is not None:
        return _refused(record, record["refusal"])
    if filters and not record["fleet"]:
        return "no compute host is known"
    if record["before_filters"] and (not filters or not filters[0]["start"]):
        return _all_gone_before(record)
    if filters and filters[-1]["end"]:
        hosts = f"{record['passed']} of {record['fleet']} hosts"
        return f"{hosts} pass every filter, and none can be claimed"
    if filters:  # without the numbers: no detail was wanted
        name, start = filters[-1]["name"], filters[-1]["start"]
        reasons = ", ".join(f"{code} {count}" for code, count in filters[-1]["removed"].items())
        return f"{name} removed the last {start} of {record['fleet']} hosts: {reasons}"
    return str(record["error"])


def _no_room(record: Record) -> str:
    """The first cause that is known of a refusal of Placement's."""
    refused = (record.get("placement") or {}).get("refused", {})
    known = (f"{host}: {reason}" for host, reason in refused.items() if reason)
    first = next(known, None)
    return "" if first is None else f"; Placement offers no room on {first}"


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


def lines(record: Record) -> Iterable[str]:
    """The cause, the fate of the hosts that were asked for, and the circumstances."""
    return record["cause"], *_on_hosts(record.get("on_host")), *_summary(record)


def _summary(record: Record) -> Iterable[str]:
    uuids, count = record["instance_uuids"], record["num_instances"]
    named = ", ".join(uuids[:3]) + (f" and {len(uuids) - 3} more" if len(uuids) > 3 else "")
    yield f"  request {record['request_id'] or '-'}, {count} instance(s): {named or '-'}"
    code = "" if record["outcome"] == "selected" else f"; code {record['outcome']}"
    by = f" by {record['worker']}" if record.get("worker") else ""
    yield f"  decided {record['started_at']}{by} ({record['driver'] or 'no driver'}){code}"
    stages = "".join(f", {name} {spent:.1f}" for name, spent in record["stages_ms"].items())
    age = record["state_age_seconds"]
    state = "" if age is None else f"; state {age:.1f} s old"
    yield f"  took {record['elapsed_ms']:.1f} ms{stages}{state}; seed {record['seed']}"
    claim = record["claim"]
    if claim["outcome"] or claim["races_lost"]:
        lost = f", {claim['races_lost']} race(s) lost" if claim["races_lost"] else ""
        yield f"  claim {claim['outcome']}{lost}"
    if used := record.get("placement"):
        calls = ", ".join(f"{count} x {kind}" for kind, count in used["calls"].items())
        asked = ", ".join(used["asked"][-10:])  # the last ones
        yield f"  Placement {used['ms']:.1f} ms ({calls}); asked about: {asked or 'none'}"
        for host, reason in list(used["refused"].items())[-10:]:
            yield f"    refused {host}: {reason or 'it did not say why'}"
    if record["cells_left_out"]:
        cells = ", ".join(record["cells_left_out"])
        yield f"  cells left out, because they did not answer: {cells}"
    if record["outcome"] == errors.NO_HOST_FITS and record["error"]:
        yield f"  the caller got: {record['error']}"
    if record["chosen"]:
        alternates = [each["host"] for row in record["alternates"][:1] for each in row]
        yield f"  alternates: {', '.join(alternates) or 'none'}"


def _on_hosts(hosts: Sequence[Record] | None) -> Iterable[str]:
    if hosts is None:
        return
    if not hosts:
        yield "There is no such host now."
    for each in hosts:
        host, node = each["host"], each["node"]
        name = host if node in (None, host) else f"{host} ({node})"
        moment = "" if each["as_of"] == THEN else " (as of now: what was is forgotten)"
        yield f"{name} {_fate(each)}{moment}."


def _fate(each: Record) -> str:
    if each["status"] == "never_evaluated":
        return f"was never evaluated: {each['text']} [{each['reason']}]"
    if each["status"] == "removed":
        numbers = f"; {each['wanted']} wanted, found: {each['found']}" if each["wanted"] else ""
        stale = " (now)" if each["numbers_of"] != THEN and numbers else ""
        others = f"; also fails {', '.join(each['also_fails'])}" if each["also_fails"] else ""
        verb = f"was removed by {each['filter']}: {each['text']}"
        return f"{verb} [{each['reason']}]{numbers}{stale}{others}"
    if each["status"] == "unknown":
        return "is not remembered"
    part = "was chosen" if each["chosen"] else "passed every filter"
    part += ", an alternate" if each["alternate"] and not each["chosen"] else ""
    if "rank" not in each:
        return part
    return f"{part}: number {each['rank']} of {each['of']}, weight {each['total']:.4g}"
