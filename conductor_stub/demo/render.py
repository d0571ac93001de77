"""Showing the demo's outcome to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conductor_stub.demo.scenario import ACTIVE, ASKS, CHECKS, Outcome, Server
from scheduler.explain.record import DecisionRecord

_BAR_WIDTH = 16
_STYLES = {ACTIVE: "green"}


def servers(outcome: Outcome) -> Table:
    """One row per server: where it went, after how many attempts, how fast."""
    table = _table("Servers", ("server", "host", "zone"), ("attempts",))
    table.add_column("state", no_wrap=True)
    for heading in ("decision ms", "total ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for ask in ASKS:
        for name in ask.names:
            table.add_row(*_server_row(outcome.servers[name]))
    return table


def _table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in texts:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _server_row(server: Server) -> list[str | Text]:
    decided = "-" if server.decision_ms is None else f"{server.decision_ms:.1f}"
    state = Text(server.state.upper(), style=_STYLES.get(server.state, "red"))
    return [
        server.name,
        server.host or "-",
        server.zone or "-",
        str(server.attempts),
        state,
        decided,
        f"{server.total_ms:.0f}",
    ]


def bars(
    total_mb: Mapping[str, int], before_mb: Mapping[str, int], after_mb: Mapping[str, int]
) -> Table:
    """One row per host: its memory before and after, as bars of its own size."""
    table = _table("Memory in use per host", ("host", "before", "after"), ("MB",))
    largest = max(total_mb.values(), default=1)
    for host, total in total_mb.items():
        width = max(1, round(_BAR_WIDTH * total / largest))
        table.add_row(
            host,
            _bar(before_mb[host], total, width),
            _bar(after_mb[host], total, width),
            f"{before_mb[host]} → {after_mb[host]} / {total}",
        )
    return table


def _bar(used: int, total: int, width: int) -> Text:
    filled = min(width, round(width * used / total)) if total else 0
    bar = Text("█" * filled, style="cyan")
    bar.append("░" * (width - filled), style="dim")
    return bar


def refusal(name: str, record: DecisionRecord) -> Table:
    """How many hosts each filter removed from the request that could not be served."""
    title = f"Why {name} was refused: {record.hosts_considered} hosts considered"
    table = _table(title, ("filter",), ("before", "removed", "left"))
    table.add_column("reasons")
    for count in record.filters:
        reasons = ", ".join(f"{code}: {number}" for code, number in count.removed.items())
        lost = count.start - count.end
        table.add_row(count.name, str(count.start), str(lost), str(count.end), reasons or "-")
    return table


def verdict(outcome: Outcome, console: Console) -> bool:
    """Print each check with its result; True if all hold."""
    results: Sequence[tuple[str, bool]] = [(text, check(outcome)) for text, check in CHECKS]
    for text, holds in results:
        mark = Text("✔ ", style="green") if holds else Text("✘ ", style="red")
        console.print(mark + Text(text, style="" if holds else "red"))
    return all(holds for _text, holds in results)
