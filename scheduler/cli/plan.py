"""``plan``: which servers to move, so that hosts are empty, have room, or obey the rules."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from oslo_log import log as logging
from rich import box
from rich.table import Table

from scheduler import errors, exit_codes, plugins
from scheduler.cli import command
from scheduler.cli.command import argument
from scheduler.cli.what_if import request_for
from scheduler.db.database import FAILURES
from scheduler.db.databases import Databases
from scheduler.explain.rendering import Paper
from scheduler.introspection.what_if import Overlay
from scheduler.planning.mover import Mover
from scheduler.planning.moves import Plan
from scheduler.planning.plans import Planner
from scheduler.replay import database_fleet, pages

LOG = logging.getLogger(__name__)

_HEADS: Final = ("wave", "server", "from", "to", "MB", "vCPUs", "GB", "reason", "alternates")
_MOST_MOVES: Final = 10_000
#: Most time for finding room after a refusal, and for reading hosts and servers before that.
SEARCH_SECONDS: Final = 1.0
READING_SECONDS: Final = 3.0
#: Filters of a refusal for want of room.
OF_ROOM: Final = frozenset(("CoreFilter", "DiskFilter", "RamFilter"))
_COMMON: Final = (
    argument(
        "--seconds",
        type=command.positive,
        metavar="S",
        help="end the search after so long, with what was found by then",
    ),
    command.PAGE,
    argument(
        "--shell", action="store_true", help="print the client's commands, one wave after another"
    ),
)


def _stacking(conf: Any) -> Any:
    """*conf* with weights that fill hosts up, for plans that need hosts or room."""
    multipliers = ("ram_weight_multiplier", "cpu_weight_multiplier")
    return Overlay.from_values(conf, {("filter_scheduler", name): -1.0 for name in multipliers})


def _planned(self: Any, args: Any, conf: Any, plan: Callable[[Planner], Plan]) -> Mapping[str, Any]:
    """A *plan* for the hosts and servers of the databases as JSON has it, with ``shell`` if asked.

    The page is written, too.
    """
    plugins.prepare(self.conf)
    fleet, left_out = database_fleet.read(conf, self.databases)
    track = functools.partial(command.tracked, what="Planning")
    made = plan(Planner(Mover(fleet, args.seconds or math.inf), left_out, track))
    if made.reached < made.wanted or made.is_cut_off:
        self.status = exit_codes.FAILURE
    found = made.to_dict()
    if args.output is not None:
        self.write_page(args.output, _to_html(found))
    return {**found, "shell": list(made.shell())} if args.shell else found


def _show(self: Any, found: Mapping[str, Any]) -> None:
    """Lines for a shell, or a table of moves, what stays, and the fleet before and after."""
    if "shell" in found:
        stuck = (f"# {errors.in_one_line(each)}" for each in _stuck_lines(found))
        self.app.stdout.write("".join(f"{line}\n" for line in (*found["shell"], *stuck)))
        return
    # Terminals wrap what is wider than they are; names can be copied then.
    console = Paper(file=self.app.stdout, width=1000, highlight=False, markup=False)
    console.print(_summary(found), soft_wrap=True)
    if found["moves"]:
        table = Table(*_HEADS, box=box.SIMPLE)
        for row in _rows(found):
            table.add_row(*row)
        console.print(table)
    for line in _stuck_lines(found):
        console.print(line, soft_wrap=True)
    for name, before in found["before"].items():
        after = found["after"][name]
        console.print(f"{name.replace('_', ' ')}: {before} -> {after}")


def _summary(found: Mapping[str, Any]) -> str:
    moves, waves = len(found["moves"]), max((each["wave"] for each in found["moves"]), default=0)
    hosts = f" ({', '.join(sorted(set(found['hosts'])))})" if found["hosts"] else ""
    cut = "; the time was over before the search" if found["is_cut_off"] else ""
    return (
        f"{found['goal']}: {found['reached']} of {found['wanted']}{hosts}, "
        f"{moves} move{'s' * (moves != 1)} in {waves} wave{'s' * (waves != 1)}{cut}"
    )


def _rows(found: Mapping[str, Any]) -> Iterator[list[str]]:
    for each in found["moves"]:
        numbers = (each["memory_mb"], each["vcpus"], each["disk_gb"])
        names = (each["wave"], each["server"], each["source"], each["target"])
        alternates = ", ".join(each["alternates"]) or "-"
        yield [*map(str, (*names, *numbers)), each["reason"], alternates]


def _stuck_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for each in found["stuck"]:
        where = f" on {each['host']}" if each["host"] else ""
        yield f"{each['server']}{where} stays: {each['reason']}"


def _to_html(found: Mapping[str, Any]) -> str:
    """The page of a plan in the form of ``Plan.to_dict``."""
    fleets = (found["before"], found["after"])
    lines = {name: list(enumerate(shares, 1)) for name, shares in found["memory"].items()}
    return pages.page(
        "plan.html",
        title="Plan of moves",
        summary=_summary(found),
        counts=[[name.replace("_", " "), *(each[name] for each in fleets)] for name in fleets[0]],
        memory=list(lines),
        chart=pages.line_chart("Share of the memory of each host", lines),
        heads=_HEADS,
        rows=list(_rows(found)),
        stuck=list(_stuck_lines(found)),
    )


_planning = functools.partial(command.on_tables, command.Text, show=_show)


@_planning(argument("hosts", metavar="HOST", nargs="+", help="hosts to empty"), *_COMMON)
def drain(self: Any, args: Any) -> Mapping[str, Any]:
    """Plan to move every server off some hosts.

    Each move is decided by the scheduler's own filters and weights on the state after the moves
    before it.  Nothing is moved: it is advice.
    """
    return _planned(self, args, self.conf, lambda planner: planner.drain(args.hosts))


@_planning(
    argument("--flavor", metavar="NAME", required=True, help="a flavor of the database"),
    argument("--count", type=command.positive, default=1, metavar="N", help="how many servers"),
    argument("--az", metavar="ZONE", help="availability zone"),
    argument("--project", metavar="ID", help="project that asks"),
    *_COMMON,
)
def fit(self: Any, args: Any) -> Mapping[str, Any]:
    """Plan moves that make room for servers of a flavor."""
    with errors.as_invalid("--flavor", errors.NotFound):
        spec = request_for(self.conf, self.databases, args.flavor, args.az, args.project)
    return _planned(self, args, _stacking(self.conf), lambda its: its.fit(spec, args.count))


def moves_for_room(conf: Any, databases: Databases, refused: Mapping[str, Any]) -> int | None:
    """Number of moves that would make room for what was *refused*, a record of ``explain``.

    None where room is not what it lacks, or none is found in SEARCH_SECONDS.
    """
    findings = (refused["refusal"] or {}).get("findings", ())
    if not any(each["filter"] in OF_ROOM for each in findings) or refused["flavor"] is None:
        return None
    try:
        plugins.prepare(conf)
        conf = _stacking(conf)
        asked = (refused[name] for name in ("flavor", "zone", "project"))
        spec = request_for(conf, databases, *asked)
        fleet, left_out = database_fleet.read(conf, databases, READING_SECONDS)
        plan = Planner(Mover(fleet, SEARCH_SECONDS), left_out).fit(spec, refused["num_instances"])
    except (errors.NovaException, TimeoutError, *FAILURES):
        LOG.debug("It is not known what would make room", exc_info=True)
        return None
    return len(plan.moves) if plan.reached == plan.wanted else None


@_planning(
    argument("count", metavar="N", type=command.positive, help="hosts to free"),
    argument("--moves", type=command.positive, default=_MOST_MOVES, metavar="M", help="most moves"),
    *_COMMON,
)
def free_hosts(self: Any, args: Any) -> Mapping[str, Any]:
    """Plan to empty so many hosts more, those first that cost the fewest moves."""
    conf = _stacking(self.conf)
    return _planned(self, args, conf, lambda planner: planner.free_hosts(args.count, args.moves))


@_planning(*_COMMON)
def rules(self: Any, args: Any) -> Mapping[str, Any]:
    """Find servers that would not get their host today, and plan to move them.

    Groups, zones, aggregates and the like may have changed since, and so may servers.
    """
    return _planned(self, args, self.conf, Planner.rules)
