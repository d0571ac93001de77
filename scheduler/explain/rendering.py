"""An explanation for people: the cause in one line, then the numbers behind it as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from scheduler import errors
from scheduler.explain.before import TEXTS
from scheduler.explain.numbers import number

_REPEATED: Final = "repeated"


def show(console: Console, told: Mapping[str, Any]) -> None:
    """Print one record, in the form of ``form.to_dict``; the first line is the cause."""
    _line(console, told["cause"])
    for text in _on_hosts(told.get("on_host")):
        _line(console, text)
    for text in _facts(told):
        _line(console, text)
    tables = (
        _removals(told),
        _examples(told),
        _closest(told),
        _weights(told),
        _on_host_weights(told),
    )
    for table in tables:
        if table is not None:
            console.print(table)


def _line(console: Console, text: str) -> None:
    """One line however narrow the terminal is, which wraps it itself."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


# --- in lines ----------------------------------------------------------------------------


def _facts(told: Mapping[str, Any]) -> Iterable[str]:
    uuids = told["instance_uuids"]
    named = ", ".join(uuids[:3]) + (f" and {len(uuids) - 3} more" if len(uuids) > 3 else "")
    count = told["num_instances"]
    yield f"  request {told['request_id'] or '-'}, {count} instance(s): {named or '-'}"
    code = "" if told["outcome"] == "selected" else f"; code {told['outcome']}"
    worker = told.get("worker")
    by = f" by {worker}" if worker else ""
    yield f"  decided {told['started_at']}{by} ({told['driver'] or 'no driver'}){code}"
    stages = "".join(f", {name} {spent:.1f}" for name, spent in told["stages_ms"].items())
    age = told["state_age_seconds"]
    state = "" if age is None else f"; state {age:.1f} s old"
    yield f"  took {told['elapsed_ms']:.1f} ms{stages}{state}; seed {told['seed']}"
    claim = told["claim"]
    if claim["outcome"] or claim["races_lost"]:
        lost = f", {claim['races_lost']} race(s) lost" if claim["races_lost"] else ""
        yield f"  claim {claim['outcome']}{lost}"
    if told["cells_left_out"]:
        yield f"  cells left out, because they did not answer: {', '.join(told['cells_left_out'])}"
    yield from _choice(told)


def _choice(told: Mapping[str, Any]) -> Iterable[str]:
    if told["outcome"] == errors.NO_HOST_FITS and told["error"]:
        yield f"  the caller was told: {told['error']}"
    if told["chosen"]:
        alternates = [each["host"] for row in told["alternates"][:1] for each in row]
        yield f"  alternates: {', '.join(alternates) or 'none'}"


def _on_hosts(looked_at: Sequence[Mapping[str, Any]] | None) -> Iterable[str]:
    if looked_at is None:
        return
    if not looked_at:
        yield "There is no such host now."
    for each in looked_at:
        name = each["host"] if each["node"] in (None, each["host"]) else _node(each)
        moment = "" if each["as_of"] == "decision" else " (as of now: what was is forgotten)"
        yield f"{name} {_fate(each)}{moment}."


def _node(each: Mapping[str, Any]) -> str:
    return f"{each['host']} ({each['node']})"


def _fate(each: Mapping[str, Any]) -> str:
    if each["status"] == "never_evaluated":
        return f"was never evaluated: {each['text']} [{each['reason']}]"
    if each["status"] == "removed":
        numbers = f"; {each['wanted']} wanted, found: {each['found']}" if each["wanted"] else ""
        stale = " (now)" if each["numbers_of"] == "now" and numbers else ""
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


def _table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _removals(told: Mapping[str, Any]) -> Table | None:
    """What removed how many hosts."""
    left = told["fleet"]
    if not left:
        return None
    refusal = told["refusal"]
    title = f"What removed how many of {left} hosts"
    filters = told["filters"]
    if refusal is not None and refusal["index"]:
        title += f", for instance {refusal['index'] + 1} of {told['num_instances']}"
        filters = refusal["filters"]
    table = _table(title, ("step", "reason"), ("removed", "left"))
    for name, removed in told["never_evaluated"].items():
        left -= removed
        table.add_row("(never evaluated)", f"{TEXTS.get(name, name)}", str(removed), str(left))
    texts = {each["reason"]: each["text"] for each in refusal["findings"]} if refusal else {}
    for count in filters:
        left = count["start"]
        if not count["removed"]:
            table.add_row(count["name"], "", "0", str(left))
        for code, removed in count["removed"].items():
            left -= removed
            table.add_row(count["name"], texts.get(code, code), str(removed), str(left))
    if told["filters_skipped"]:
        table.add_row("(no filter asked)", "the request forces hosts", "0", str(left))
    return table


def _examples(told: Mapping[str, Any]) -> Table | None:
    """The hosts that were closest; those that fail nothing else are near misses."""
    refusal = told["refusal"]
    if refusal is None or not refusal["findings"]:
        return None
    table = _table("The closest hosts", ("filter", "wanted", "host", "has", "also fails"), ())
    for finding in sorted(refusal["findings"], key=lambda each: -each["removed"]):
        for place, each in enumerate(finding["examples"]):
            table.add_row(
                "" if place else finding["filter"],
                "" if place else str(finding["wanted"] or ""),
                str(each["host"]),
                f"{each['found']}{_short(each['missing'])}",
                ", ".join(each["also_fails"]) or "nothing (near miss)",
            )
    return table


def _closest(told: Mapping[str, Any]) -> Table | None:
    """Of a decision that succeeded, per reason the removed host that was closest."""
    if not told.get("closest"):  # records of older releases have none
        return None
    table = _table("The closest host removed, per reason", ("filter", "wanted", "host", "has"), ())
    for each in told["closest"]:
        now = "" if each["numbers_of"] == "decision" else " (now)"
        has = f"{each['found']}{_short(each['missing'])}{now}"
        table.add_row(each["filter"], each["wanted"] or each["text"], each["host"], has)
    return table


def _short(missing: float | None) -> str:
    return "" if missing is None else f" ({number(missing)} off)"


def _weights(told: Mapping[str, Any]) -> Table | None:
    """The best hosts and what their weights are made of."""
    if not told["top"] or told["outcome"] != "selected":
        return None
    return _weights_of("The best hosts", told["top"])


def _on_host_weights(told: Mapping[str, Any]) -> Table | None:
    shown = {each["host"] for each in told["top"]}
    rows = [
        each
        for each in told.get("on_host") or ()
        if each.get("weighers") and each["host"] not in shown
    ]
    return _weights_of("The host", rows) if rows else None


def _weights_of(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Weighers that say 0 of all hosts are left out."""
    texts = ("host", "weigher")
    table = _table(title, texts, ("raw", "normalised", "multiplier", "weighted"))
    names = {part["name"] for row in rows for part in row["weighers"] if part["weighted"]}
    for row in rows:
        parts = [part for part in row["weighers"] if part["name"] in names]
        table.add_row(str(row["host"]), "(total)", "", "", "", f"{row['total']:.4f}")
        for part in parts:
            table.add_row(
                "",
                part["name"],
                number(part["raw"]),
                f"{part['normalised']:.4f}",
                number(part["multiplier"]),
                f"{part['weighted']:.4f}",
            )
    return table
