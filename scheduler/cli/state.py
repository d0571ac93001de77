"""``state``: what each running worker knows of the fleet, and if the database says the same."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from scheduler import errors, exit_codes
from scheduler.cli import bus
from scheduler.cli.bus import Answer, Ask
from scheduler.cli.command import List, Shortened, Table, action, argument
from scheduler.db.cells import CellsReader
from scheduler.db.databases import Databases
from scheduler.drivers.loading import load_host_manager
from scheduler.hosts.table import Key
from scheduler.introspection.host_dump import NAMES, HostDump, differences, dump_host, in_order
from scheduler.introspection.state import MOST_IN_A_PAGE

SUMMARY = {
    "host": "Daemon",
    "worker": "Worker",
    "pid": "PID",
    "version": "Version",
    "hosts": "Hosts",
    "up": "Up",
    "disabled": "Disabled",
    "instances": "Instances",
    "open_picks": "Open picks",
    "state_age_seconds": "Age s",
    "hash": "State hash",
}
OF_HOST = ("Daemon", "Worker", "Host", "Node", "Column", "In memory", "As reported")
#: So often what seems different is looked at again: reports and decisions go on meanwhile.
LOOKS = 3


class DatabaseState:
    """Read anew whenever asked; threads may share it."""

    def __init__(self, conf: cfg.ConfigOpts, databases: Databases) -> None:
        self._manager = load_host_manager(conf, CellsReader(conf, databases))
        self._reading = threading.Lock()

    def host_dumps(self, hosts: Iterable[str] | None = None) -> dict[Key, HostDump]:
        """Of all hosts, or of some, as of now; StateUnavailable if a part cannot be read."""
        with self._reading:
            self._manager.refresh_everything()
            left_out = [
                each.name or each.uuid for each in self._manager.cell_health() if each.is_left_out
            ]
            if left_out:
                raise errors.StateUnavailable(reason=f"no answer from cell {', '.join(left_out)}")
            table, reservations = self._manager.table, self._manager.reservations
            wanted = None if hosts is None else set(hosts)
            return {
                key: dump_host(table, reservations, key)
                for key in table.rows
                if wanted is None or key[0] in wanted
            }


def _compare(ask: Ask, database: DatabaseState, *, with_update: bool) -> list[dict[str, Any]]:
    """Differences between one worker and the database, also when both are asked again.

    What a later look does not find just the same was on its way.
    """
    found: list[dict[str, Any]] | None = None
    hosts: list[str] | None = None
    for _look in range(LOOKS):
        if with_update:
            ask("state_update")
        of_worker = {(each["host"], each["node"]): each for each in _host_dumps(ask, hosts)}
        stored = database.host_dumps(hosts)
        now = [
            each
            for key in sorted(of_worker.keys() | stored.keys(), key=in_order)
            for each in differences(key, of_worker.get(key), stored.get(key))
        ]
        found = now if found is None else [each for each in now if each in found]
        if all(each["explained"] for each in found):
            break
        hosts = sorted({each["host"] for each in found})
    return found or []


class _Table(bus.OnWorkers, List):
    """A table of what the workers answer."""


class Show(_Table):
    """Show what each running worker knows: hosts, instances, promises, its age and its hash.

    With --host, all that it knows of that host, and what the host itself reported where promises
    make a difference.
    """

    arguments = (
        argument("--host", action="append", help="show this host; may be repeated"),
        *bus.worker_arguments(),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask every worker."""
        with self.asking(parsed_args) as daemons:
            if parsed_args.host:
                hosts = list(dict.fromkeys(parsed_args.host))
                return OF_HOST, _of_hosts(daemons.all("state_hosts", hosts=hosts), hosts)
            answers = daemons.each(lambda ask: {**ask("state_summary"), **ask("state_hash")})
        return tuple(SUMMARY.values()), [
            [answer.result.get(name) for name in SUMMARY] for answer in answers
        ]


@action(
    _Table,
    argument(
        "--as-is",
        action="store_true",
        help="do not let the workers read what changed first, as every decision does",
    ),
    *bus.worker_arguments(),
    columns=(
        *("Daemon", "Worker", "Host", "Node", "Column"),
        *("In memory", "In database", "Open picks", "Explained"),
    ),
)
def compare(command: _Table, args: Any) -> list[Sequence[Any]]:
    """Compare what each running worker knows with the database.

    Every difference is named; what the worker has promised and the host has not reported yet is
    explained by that.  Any other difference ends with status 1.
    """
    database = DatabaseState(command.conf, command.databases)
    with command.asking(args) as daemons:
        answers = daemons.each(lambda ask: _compare(ask, database, with_update=not args.as_is))
    found = [(answer, each) for answer in answers for each in answer.result]
    if not all(each["explained"] for _answer, each in found):
        command.status = exit_codes.FAILURE
    return [(*_place(answer, each), each["picks"], each["explained"]) for answer, each in found]


@action(
    _Table,
    *bus.worker_arguments(timeout_seconds=120),
    columns=(
        *("Daemon", "Worker", "Host", "Node", "Column", "Was", "Is"),
        *("Hosts read", "Repaired", "State hash"),
    ),
)
def refresh(command: _Table, args: Any) -> list[Sequence[Any]]:
    """Let each running worker read everything again, and say what it had missed.

    One line for each thing that was put right, or one line for a worker that had missed nothing.
    """
    with command.asking(args) as daemons:
        answers = daemons.all("state_refresh")
    nothing = dict.fromkeys(("host", "node", "column", "memory", "database"))
    return [
        (*_place(answer, each), *(answer.result[name] for name in ("hosts", "repaired", "hash")))
        for answer in answers
        for each in answer.result["repairs"] or [nothing]
    ]


def _place(answer: Answer[Any], difference: dict[str, Any]) -> Sequence[Any]:
    place = (difference[name] for name in ("host", "node", "column"))
    values = (Shortened(difference[name]) for name in ("memory", "database"))
    return answer.worker.host, answer.worker.number, *place, *values


def _host_dumps(ask: Ask, hosts: Sequence[str] | None) -> list[HostDump]:
    """Of all hosts, or of the few that are worth another look, page by page."""
    found: list[HostDump] = []
    after = None
    while True:
        page = ask("state_hosts", hosts=hosts, after=after, limit=MOST_IN_A_PAGE)
        found += page["hosts"]
        after = page["next"]
        if after is None:
            return found


def _of_hosts(answers: Sequence[Answer[Any]], hosts: Sequence[str]) -> list[Sequence[Any]]:
    """Line by line; ComputeHostNotFound for a host that no worker knows."""
    for host in hosts:
        if all(host in answer.result["unknown"] for answer in answers):
            near = answers[0].result["unknown"][host]
            raise errors.ComputeHostNotFound(
                host=host if near is None else f"{host} (did you mean {near}?)"
            )
    return [
        (
            *(answer.worker.host, answer.worker.number, each["host"], each["node"], name),
            Shortened(each["values"].get(name)),
            Shortened(each["reported"].get(name, each["values"].get(name))),
        )
        for answer in answers
        for each in answer.result["hosts"]
        for name in NAMES
    ]
