"""``state``: what each running worker knows of the fleet, and if the database says the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler import errors, exit_codes
from scheduler.cli import cells, command, workers
from scheduler.cli.state_of_database import Comparison, DatabaseState
from scheduler.cli.workers import Answer, Ask
from scheduler.introspection.host_dump import NAMES, Portrait
from scheduler.introspection.state import MOST_IN_A_PAGE

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]

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
DIFFERENCES = (
    "Daemon", "Worker", "Host", "Node", "Column", "In memory", "In database", "Open picks",
    "Explained",
)  # fmt: skip
REPAIRS = ("Daemon", "Worker", "Host", "Node", "Column", "Was", "Is", "Hosts read", "Repaired",
           "State hash")  # fmt: skip
#: So often what seems different is looked at again: reports and decisions go on meanwhile.
LOOKS = 3


class Show(workers.OnWorkers, command.List):
    """Show what each running worker knows: hosts, instances, promises, its age and its hash.

    With --host, all that it knows of that host, and what the host itself reported where promises
    make a difference.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which daemons, and which hosts."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--host", action="append", help="show this host; may be repeated")
        self.add_worker_options(parser)
        return parser

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


class Compare(workers.OnWorkers, command.List):
    """Compare what each running worker knows with the database.

    Every difference is named; what the worker has promised and the host has not reported yet is
    explained by that.  Any other difference ends with status 1.
    """

    unexplained = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which daemons, and whether they may read first."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--as-is",
            action="store_true",
            help="do not let the workers read what changed first, as every decision does",
        )
        self.add_worker_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask, read, and look again at what differs."""
        database = DatabaseState(self.conf, self.databases)

        def compared(ask: Ask) -> list[dict[str, Any]]:
            comparison = Comparison(database)
            for look in range(LOOKS):
                if not parsed_args.as_is:
                    ask("state_update")
                if not comparison.look(_portraits(ask, comparison.hosts), is_first=look == 0):
                    break
            return comparison.differences

        with self.asking(parsed_args) as daemons:
            answers = daemons.each(compared)
        found = [(answer, each) for answer in answers for each in answer.result]
        self.unexplained = sum(not each["explained"] for _answer, each in found)
        return DIFFERENCES, [
            (*_place(answer, each), each["picks"], each["explained"]) for answer, each in found
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        """The status says whether there are differences that nothing explains."""
        self.unexplained = 0
        status = super().run(parsed_args)
        return status or (exit_codes.FAILURE if self.unexplained else exit_codes.OK)


class Refresh(workers.OnWorkers, command.List):
    """Let each running worker read everything again, and say what it had missed.

    One line for each thing that was put right, or one line for a worker that had missed nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which daemons."""
        parser = super().get_parser(prog_name)
        self.add_worker_options(parser, timeout_seconds=120)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask every worker."""
        with self.asking(parsed_args) as daemons:
            answers = daemons.all("state_refresh")
        nothing = dict.fromkeys(("host", "node", "column", "memory", "database"))
        return REPAIRS, [
            (
                *_place(answer, each),
                *(answer.result[name] for name in ("hosts", "repaired", "hash")),
            )
            for answer in answers
            for each in answer.result["repairs"] or [nothing]
        ]


def _place(answer: Answer[Any], difference: dict[str, Any]) -> Sequence[Any]:
    worker, each = answer.worker, difference
    return (
        worker.host,
        worker.number,
        each["host"],
        each["node"],
        each["column"],
        cells.Shortened(each["memory"]),
        cells.Shortened(each["database"]),
    )


def _portraits(ask: Ask, hosts: Sequence[str] | None) -> list[Portrait]:
    """Of all hosts, or of the few that are worth another look, page by page."""
    found: list[Portrait] = []
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
            answer.worker.host,
            answer.worker.number,
            each["host"],
            each["node"],
            name,
            cells.Shortened(each["values"].get(name)),
            cells.Shortened(each["reported"].get(name, each["values"].get(name))),
        )
        for answer in answers
        for each in answer.result["hosts"]
        for name in NAMES
    ]
