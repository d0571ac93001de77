"""``state``: what each running worker knows of the fleet."""

import argparse
from collections.abc import Sequence
from typing import Any

from scheduler import errors
from scheduler.cli import bus
from scheduler.cli.bus import Answer
from scheduler.cli.command import List, Shortened, Table, action, argument
from scheduler.introspection.host_dump import NAMES

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
}
OF_HOST = ("Daemon", "Worker", "Host", "Node", "Column", "In memory", "As reported")


class _Table(bus.OnWorkers, List):
    """A table of what the workers answer."""


class Show(_Table):
    """Show what each running worker knows: hosts, instances, promises and its age.

    With --host, all that it knows of that host, and what the host itself reported where promises
    make a difference.
    """

    arguments = (
        argument("--host", action="append", help="show this host; may be repeated"),
        *bus.worker_arguments(),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        with self.asking(parsed_args) as daemons:
            if parsed_args.host:
                hosts = list(dict.fromkeys(parsed_args.host))
                return OF_HOST, _of_hosts(daemons.all("state_hosts", hosts=hosts), hosts)
            answers = daemons.all("state_summary")
        return tuple(SUMMARY.values()), [
            [answer.result.get(name) for name in SUMMARY] for answer in answers
        ]


@action(
    _Table,
    *bus.worker_arguments(timeout_seconds=120),
    columns=(
        *("Daemon", "Worker", "Host", "Node", "Column"),
        *("Was", "Is", "Hosts read", "Repaired"),
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
        (*_place(answer, each), *(answer.result[name] for name in ("hosts", "repaired")))
        for answer in answers
        for each in answer.result["repairs"] or [nothing]
    ]


def _place(answer: Answer, difference: dict[str, Any]) -> Sequence[Any]:
    place = (difference[name] for name in ("host", "node", "column"))
    values = (Shortened(difference[name]) for name in ("memory", "database"))
    return answer.worker.host, answer.worker.number, *place, *values


def _of_hosts(answers: Sequence[Answer], hosts: Sequence[str]) -> list[Sequence[Any]]:
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
