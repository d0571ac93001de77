"""The requests of the demo, their expected outcome, and its rendering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler.engine.record import DecisionRecord

ACTIVE = "active"
ERROR = "error"
GROUP = "databases"
ZONE = "az2"
#: A flavor that no host can hold.
GIANT = "demo.giant"
GIANT_MB = 262144
#: The server whose first build fails.
UNLUCKY = "unlucky"
#: The server that fits nowhere.
REFUSED = "giant"


@dataclass(frozen=True)
class Ask:
    """*count* servers asked for at once."""

    name: str
    flavor: str
    count: int
    why: str
    zone: str | None = None
    in_group: bool = False
    #: Scheduler hint: be where the server of that name is.
    same_host_as: str | None = None
    #: Asked for only when all servers before it have ended.
    after_all: bool = False

    @property
    def names(self) -> list[str]:
        """The servers' names, as booting numbers them."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


ASKS = (
    Ask("web", "m1.small", 6, "six alike in one request"),
    Ask("db", "m1.medium", 3, "an anti-affinity group: three hosts", in_group=True),
    Ask("cache", "m1.small", 3, f"availability zone {ZONE}", zone=ZONE),
    Ask("batch", "m1.tiny", 4, "four small ones"),
    Ask("big", "m1.large", 1, "a large one"),
    Ask("sidecar", "m1.tiny", 1, "a hint: the host of web-1", same_host_as="web-1", after_all=True),
    Ask(UNLUCKY, "m1.tiny", 1, "its first build fails: built on an alternate", after_all=True),
    Ask(REFUSED, GIANT, 1, f"fits nowhere in {ZONE}", zone=ZONE),
)


@dataclass(frozen=True)
class Server:
    """One server at the end of the demo; times in milliseconds."""

    name: str
    uuid: str
    flavor: str
    state: str
    host: str | None
    zone: str | None
    attempts: int
    decision_ms: float | None
    total_ms: float
    fault: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Everything the demo's judgement rests on."""

    servers: Mapping[str, Server]
    zone_of_host: Mapping[str, str]
    #: Per host: used according to its compute node's row, and the sum over its instances.
    reported_mb: Mapping[str, int] = field(default_factory=dict)
    summed_mb: Mapping[str, int] = field(default_factory=dict)


Check = Callable[[Outcome], bool]


def hosts_of(outcome: Outcome, ask: Ask) -> list[str | None]:
    """The hosts of the servers of *ask*."""
    return [outcome.servers[name].host for name in ask.names]


def _all_built(outcome: Outcome) -> bool:
    return all(
        server.state == (ERROR if server.flavor == GIANT else ACTIVE)
        for server in outcome.servers.values()
    )


def _spread(outcome: Outcome) -> bool:
    hosts = [host for ask in ASKS if ask.in_group for host in hosts_of(outcome, ask)]
    return None not in hosts and len(set(hosts)) == len(hosts)


def _in_zone(outcome: Outcome) -> bool:
    return all(
        outcome.zone_of_host.get(server.host or "") == ask.zone
        for ask in ASKS
        if ask.zone
        for server in (outcome.servers[name] for name in ask.names)
        if server.state == ACTIVE
    )


def _together(outcome: Outcome) -> bool:
    return all(
        hosts_of(outcome, ask) == [outcome.servers[ask.same_host_as].host]
        for ask in ASKS
        if ask.same_host_as
    )


def _refused(outcome: Outcome) -> bool:
    return (outcome.servers[REFUSED].fault or "").startswith("No valid host was found.")


def _sums_match(outcome: Outcome) -> bool:
    return bool(outcome.reported_mb) and outcome.reported_mb == outcome.summed_mb


CHECKS: Sequence[tuple[str, Check]] = (
    ("every server is built, and only the giant is refused", _all_built),
    ("the group's servers are on different hosts", _spread),
    (f"the servers asked for in {ZONE} are in {ZONE}", _in_zone),
    ("the sidecar is on the host of web-1", _together),
    (
        "the unlucky one was built by its second host",
        lambda seen: seen.servers[UNLUCKY].attempts == 2,
    ),
    ("the giant was refused with a reason", _refused),
    ("what the hosts report equals the sum of their servers", _sums_match),
)


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
    """The number of hosts that each filter removed from the refused request."""
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
