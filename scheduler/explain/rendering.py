"""An explanation on a console: its sentences, then the numbers behind them as tables."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler import errors
from scheduler.explain import sentences
from scheduler.explain.measures import number
from scheduler.explain.refusal import CAUSES, THEN
from scheduler.explain.sentences import Record


class Paper(Console):
    """A console whose program ends like others when nobody reads its output any more."""

    def on_broken_pipe(self) -> None:
        """Raise the error again: the library would end the program with status 1."""
        raise

    def render_str(self, text: str, **options: Any) -> Text:
        """Show *text* as it is: names that others give are no markup, and control nothing."""
        lines = map(errors.in_one_line, text.split("\n"))
        return super().render_str("\n".join(lines), **{**options, "markup": False, "emoji": False})

    def sentence(self, text: str) -> None:
        """Print one line however narrow the terminal is, which wraps it itself."""
        self.print(errors.in_one_line(text), soft_wrap=True, highlight=False)


def show(console: Paper, record: Record) -> None:
    for text in sentences.lines(record):
        console.sentence(text)
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


def _table(title: str, texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _removals(record: Record) -> Table | None:
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
    return table if table.row_count else None


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
