"""``group``: server groups, whose members shall be together or apart."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import objects
from scheduler.cli import cells, command
from scheduler.db import groups

COLUMNS = ("ID", "Name", "Policy", "Rules", "Members")
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
MAX_SERVER_PER_HOST = "max_server_per_host"
Shown = tuple[Sequence[str], Iterable[Any]]


class List(command.List):
    """List the server groups and how many members they have."""

    is_of_api = True

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the groups."""
        with self.database.read() as connection:
            found = groups.list_all(connection)
        return COLUMNS, [
            (each.uuid, each.name, each.policy, cells.Properties(each.rules), len(each.members))
            for each in found
        ]


class Create(command.Show):
    """Create a server group."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """As ``openstack server group create``."""
        self.parser = super().get_parser(prog_name)
        self.parser.add_argument("name", metavar="NAME")
        self.parser.add_argument("--policy", choices=POLICIES, default="affinity")
        text = f"{MAX_SERVER_PER_HOST}=N: with anti-affinity, so many members may share a host"
        command.add_pairs_option(self.parser, text, "--rule", "rules")
        return self.parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Create it, then show it."""
        rules = self._rules(parsed_args)

        def create(connection: Connection) -> dict[str, Any]:
            created = groups.create(connection, parsed_args.name, parsed_args.policy, rules)
            return _fields(created, ())

        return self.dict2columns(self.database.write_retrying(create))

    def _rules(self, parsed_args: argparse.Namespace) -> dict[str, int]:
        rules = dict(parsed_args.rules)
        unknown = sorted(set(rules) - {MAX_SERVER_PER_HOST})
        if unknown:
            self.parser.error(f"no such rule: {', '.join(unknown)} (known: {MAX_SERVER_PER_HOST})")
        if rules and parsed_args.policy != "anti-affinity":
            self.parser.error(f"{MAX_SERVER_PER_HOST} is a rule of the policy anti-affinity only")
        try:
            return {key: command.positive(value) for key, value in rules.items()}
        except argparse.ArgumentTypeError as error:
            self.parser.error(f"{MAX_SERVER_PER_HOST}: {error}")


class Show(command.Show):
    """Show one server group, its members and the hosts they are on."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The group."""
        parser = super().get_parser(prog_name)
        parser.add_argument("group", metavar="GROUP", help="its uuid or name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Read the group."""
        with self.database.read() as connection:
            group = groups.get(connection, parsed_args.group)
        hosts: list[str] = []
        for database in self.cells.values():
            with database.read() as connection:
                hosts += groups.member_hosts(connection, group)
        return self.dict2columns(_fields(group, hosts))


def _fields(group: objects.InstanceGroup, hosts: Sequence[str]) -> dict[str, Any]:
    return {
        "id": group.uuid,
        "name": group.name,
        "policy": group.policy,
        "rules": cells.Properties(group.rules),
        "members": cells.Names(group.members),
        "hosts": cells.Names(sorted(hosts)),
    }
