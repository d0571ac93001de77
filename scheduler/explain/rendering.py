"""An explanation for people: the cause in one line, then the numbers behind it as tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from scheduler import errors
from scheduler.explain.conditions import number
from scheduler.explain.refusal import CAUSES, THEN

Record = Mapping[str, Any]
"""A record in the form of ``answer.to_dict``, or one part of it."""


def show(console: Console, record: Record) -> None:
    """Print one record; the first line is the cause."""
    for text in (record["cause"], *_on_hosts(record.get("on_host")), *_summary(record)):
        # However narrow the terminal is, which wraps it itself.
        console.print(text, soft_wrap=True, highlight=False, markup=False)
    refusal, top = record["refusal"], record["top"]
    findings = record.get("closest") if refusal is None else refusal["findings"]
    shown = {each["host"] for each in top}
    hosts = [each for each in record.get("on_host") or () if each.get("weighers")]
    tables = (
        _removals(record),
        _closest("The closest hosts" + ("" if refusal else " removed"), findings or []),
        _weights("The best hosts", top if record["outcome"] == "selected" else []),
        _weights("The host", [each for each in hosts if each["host"] not in shown]),
    )
    for table in tables:
        if table is not None:
            console.print(table)


# --- in lines ----------------------------------------------------------------------------


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
        asked = f"; asked about {', '.join(used['asked'])}" if used["asked"] else ""
        yield f"  Placement {used['ms']:.1f} ms ({calls}){asked}"
        for host, reason in used["refused"].items():
            yield f"    refused {host}: {reason or 'it did not say why'}"
    if record["cells_left_out"]:
        cells = ", ".join(record["cells_left_out"])
        yield f"  cells left out, because they did not answer: {cells}"
    if record["outcome"] == errors.NO_HOST_FITS and record["error"]:
        yield f"  the caller was told: {record['error']}"
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


# --- in tables ---------------------------------------------------------------------------


def _table(title: str, texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _removals(record: Record) -> Table | None:
    """Table of the causes that removed hosts, with the number of each."""
    left, refusal, filters = record["fleet"], record["refusal"], record["filters"]
    if not left:
        return None
    title = f"What removed how many of {left} hosts"
    if refusal is not None and refusal["index"]:
        title += f", for instance {refusal['index'] + 1} of {record['num_instances']}"
        filters = refusal["filters"]
    table = _table(title, ("step", "reason"), ("removed", "left"))
    for name, removed in record["never_evaluated"].items():
        left -= removed
        table.add_row("(never evaluated)", CAUSES.get(name, name), str(removed), str(left))
    texts = {each["reason"]: each["text"] for each in refusal["findings"]} if refusal else {}
    for count in filters:
        left = count["start"]
        if not count["removed"]:
            table.add_row(count["name"], "", "0", str(left))
        for code, removed in count["removed"].items():
            left -= removed
            table.add_row(count["name"], texts.get(code, code), str(removed), str(left))
    if record["filters_skipped"]:
        table.add_row("(no filter asked)", "the request forces hosts", "0", str(left))
    return table


def _closest(title: str, findings: Sequence[Record]) -> Table | None:
    """The removed hosts that were closest; those that fail nothing else are near misses."""
    if not findings:
        return None
    table = _table(title, ("filter", "wanted", "host", "has", "also fails"))
    for finding in sorted(findings, key=lambda each: -each["removed"]):
        now = "" if finding.get("numbers_of", THEN) == THEN else " (now)"
        first = [finding["filter"], str(finding["wanted"] or "")]
        for each in finding["examples"]:
            missing, others = each["missing"], each["also_fails"]
            short = "" if missing is None else f" ({number(missing)} off)"
            fails = "" if others is None else ", ".join(others) or "nothing (near miss)"
            table.add_row(*first, str(each["host"]), f"{each['found']}{short}{now}", fails)
            first = ["", ""]
    return table


def _weights(title: str, rows: Sequence[Record]) -> Table | None:
    """Table of the parts of hosts' weights; weighers that say 0 of all are left out."""
    if not rows:
        return None
    table = _table(title, ("host", "weigher"), ("raw", "normalised", "multiplier", "weighted"))
    names = {part["name"] for row in rows for part in row["weighers"] if part["weighted"]}
    for row in rows:
        table.add_row(str(row["host"]), "(total)", "", "", "", f"{row['total']:.4f}")
        for part in row["weighers"]:
            if part["name"] in names:
                raw, multiplier = number(part["raw"]), number(part["multiplier"])
                values = raw, f"{part['normalised']:.4f}", multiplier, f"{part['weighted']:.4f}"
                table.add_row("", part["name"], *values)
    return table
