"""``state``: what each running worker knows of the fleet."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler.cli import command, workers

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]

COLUMNS = {
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


class Show(workers.OnWorkers, command.List):
    """Show what each running worker knows: hosts, instances, promises, the age of it all."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which daemons."""
        parser = super().get_parser(prog_name)
        self.add_worker_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask every worker."""
        with self.asking(parsed_args) as daemons:
            answers = daemons.all("state_summary")
        return tuple(COLUMNS.values()), [
            [answer.result.get(name) for name in COLUMNS] for answer in answers
        ]
