"""The requests of the demo, their expected outcome, and its rendering."""

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
    """Everything the demo's judgement rests on, by the names of servers and hosts."""

    servers: Mapping[str, Server]
    decisions: Mapping[str, DecisionRecord]
    #: The memory that is used: by the rows of the compute nodes, and as the sum over instances.
    reported_mb: Mapping[str, int]
    summed_mb: Mapping[str, int]

    def hosts_of(self, ask: Ask) -> list[str | None]:
        """The hosts of the servers of *ask*."""
        return [self.servers[name].instance.host for name in ask.names]


def _all_built(outcome: Outcome) -> bool:
    return all(
        each.instance.vm_state == (ERROR if name == REFUSED else ACTIVE)
        for name, each in outcome.servers.items()
    )


def _spread(outcome: Outcome) -> bool:
    hosts = [host for ask in ASKS if ask.in_group for host in outcome.hosts_of(ask)]
    return None not in hosts and len(set(hosts)) == len(hosts)


def _in_zone(outcome: Outcome) -> bool:
    asked_for = [outcome.servers[name] for ask in ASKS if ask.zone for name in ask.names]
    return {each.instance.availability_zone for each in asked_for if each.is_active} == {ZONE}


def _together(outcome: Outcome) -> bool:
    sidecar, web = outcome.servers["sidecar"], outcome.servers["web-1"]
    return sidecar.instance.host == web.instance.host


def _refused(outcome: Outcome) -> bool:
    fault = outcome.servers[REFUSED].fault
    return str(fault and fault.message).startswith("No valid host was found.")


CHECKS: Sequence[tuple[str, Callable[[Outcome], bool]]] = (
    ("every server is built, and only the giant is refused", _all_built),
    ("the group's servers are on different hosts", _spread),
    (f"the servers asked for in {ZONE} are in {ZONE}", _in_zone),
    ("the sidecar is on the host of web-1", _together),
    (
        "the unlucky one was built by its second host",
        lambda seen: seen.servers[UNLUCKY].attempts == 2,
    ),
    ("the giant was refused with a reason", _refused),
    (
        "what the hosts report equals the sum of their servers",
        lambda seen: bool(seen.reported_mb) and seen.reported_mb == seen.summed_mb,
    ),
)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in columns:
        table.add_column(heading, no_wrap=True)
    return table


def servers(outcome: Outcome) -> Table:
    """One row per server: where it went, after how many attempts, how fast it was decided."""
    table = _table("Servers", "server", "host", "zone", "attempts", "state", "decision ms")
    for name, server in outcome.servers.items():
        instance, decision = server.instance, outcome.decisions.get(name)
        table.add_row(
            name,
            instance.host or "-",
            instance.availability_zone or "-",
            str(server.attempts),
            Text(server.state, style="green" if server.is_active else "red"),
            "-" if decision is None else f"{decision.elapsed_ms:.1f}",
        )
    return table


def refusal(name: str, record: DecisionRecord) -> Table:
    """The number of hosts that each filter removed from the refused request."""
    title = f"Why {name} was refused: {record.hosts_considered} hosts considered"
    table = _table(title, "filter", "before", "removed", "left", "reasons")
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
