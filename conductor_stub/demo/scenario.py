"""The requests of the demo, their expected outcome, and its rendering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conductor_stub.servers import ACTIVE, ERROR, Server
from scheduler.engine.record import DecisionRecord

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
class Outcome:
    """Everything the demo's judgement rests on; times in milliseconds."""

    servers: Mapping[str, Server]
    zone_of_host: Mapping[str, str]
    #: By the server's name; no decision is known of one that was never asked for.
    decision_ms: Mapping[str, float]
    total_ms: Mapping[str, float]
    #: Per host: used according to its compute node's row, and the sum over its instances.
    reported_mb: Mapping[str, int]
    summed_mb: Mapping[str, int]

    def hosts_of(self, ask: Ask) -> list[str | None]:
        """The hosts of the servers of *ask*."""
        return [self.servers[name].instance.host for name in ask.names]


Check = Callable[[Outcome], bool]


def _all_built(outcome: Outcome) -> bool:
    return all(
        each.instance.vm_state == (ERROR if each.instance.flavor.name == GIANT else ACTIVE)
        for each in outcome.servers.values()
    )


def _spread(outcome: Outcome) -> bool:
    hosts = [host for ask in ASKS if ask.in_group for host in outcome.hosts_of(ask)]
    return None not in hosts and len(set(hosts)) == len(hosts)


def _in_zone(outcome: Outcome) -> bool:
    return all(
        outcome.zone_of_host.get(each.instance.host or "") == ask.zone
        for ask in ASKS
        if ask.zone
        for each in (outcome.servers[name] for name in ask.names)
        if each.is_active
    )


def _together(outcome: Outcome) -> bool:
    return all(
        outcome.hosts_of(ask) == [outcome.servers[ask.same_host_as].instance.host]
        for ask in ASKS
        if ask.same_host_as
    )


def _refused(outcome: Outcome) -> bool:
    fault = outcome.servers[REFUSED].fault
    return str(fault and fault.message).startswith("No valid host was found.")


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
            table.add_row(*_server_row(outcome, name))
    return table


def _table(title: str, texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in texts:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _server_row(outcome: Outcome, name: str) -> list[str | Text]:
    server = outcome.servers[name]
    instance, decided = server.instance, outcome.decision_ms.get(name)
    return [
        name,
        instance.host or "-",
        instance.availability_zone or "-",
        str(server.attempts),
        Text(instance.vm_state.upper(), style=_STYLES.get(instance.vm_state, "red")),
        "-" if decided is None else f"{decided:.1f}",
        f"{outcome.total_ms[name]:.0f}",
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
