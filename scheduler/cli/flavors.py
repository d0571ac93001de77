"""``flavor``: sizes of servers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli import cells, command
from scheduler.db import flavors

COLUMNS = ("ID", "Name", "RAM MB", "Disk GB", "Ephemeral GB", "Swap MB", "vCPUs", "Is Public")
Shown = tuple[Sequence[str], Iterable[Any]]

SIZES = (
    ("--ram", "ram_mb", 256, command.positive, "memory in MB"),
    ("--vcpus", "vcpus", 1, command.positive, "virtual CPUs"),
    ("--disk", "disk_gb", 0, command.non_negative, "root disk in GB"),
    ("--ephemeral", "ephemeral_gb", 0, command.non_negative, "ephemeral disk in GB"),
    ("--swap", "swap_mb", 0, command.non_negative, "swap space in MB"),
)


def fields(flavor: objects.Flavor) -> dict[str, Any]:
    """Everything about one flavor."""
    return {
        "id": flavor.flavorid,
        "name": flavor.name,
        "ram_mb": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "disk_gb": flavor.root_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "swap_mb": flavor.swap,
        "is_public": flavor.is_public,
        "disabled": flavor.disabled,
        "properties": cells.Properties(flavor.extra_specs),
        "projects": cells.Names(flavor.projects),
    }


class List(command.List):
    """List the flavors."""

    is_of_api = True

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the flavors."""
        with self.database.read() as connection:
            found = [fields(each) for each in flavors.list_all(connection)]
        shown = (
            *("id", "name", "ram_mb", "disk_gb", "ephemeral_gb", "swap_mb", "vcpus", "is_public"),
        )
        return COLUMNS, [[each[name] for name in shown] for each in found]


class Create(command.Show):
    """Create a flavor."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """As ``openstack flavor create``."""
        self.parser = super().get_parser(prog_name)
        self.parser.add_argument("name", metavar="NAME")
        self.parser.add_argument("--id", default="auto", help="default: a new uuid")
        for option, dest, default, kind, text in SIZES:
            self.parser.add_argument(
                option, dest=dest, type=kind, default=default, help=f"{text} (default {default})"
            )
        self.parser.add_argument(
            "--private", action="store_true", help="not for every project (default: public)"
        )
        self.parser.add_argument(
            "--project",
            dest="projects",
            action="append",
            default=[],
            help="a project that may use a private flavor; may be repeated",
        )
        command.add_pairs_option(self.parser, "an extra spec")
        return self.parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Create it, then show it."""
        if parsed_args.projects and not parsed_args.private:
            self.parser.error("--project needs --private")
        flavor = objects.Flavor(
            name=parsed_args.name,
            memory_mb=parsed_args.ram_mb,
            vcpus=parsed_args.vcpus,
            root_gb=parsed_args.disk_gb,
            ephemeral_gb=parsed_args.ephemeral_gb,
            swap=parsed_args.swap_mb,
            is_public=not parsed_args.private,
            extra_specs=dict(parsed_args.properties),
            projects=parsed_args.projects,
        )
        if parsed_args.id != "auto":
            flavor.flavorid = parsed_args.id
        created = self.database.write_retrying(
            lambda connection: flavors.create(connection, flavor)
        )
        return self.dict2columns(fields(created))


class Show(command.Show):
    """Show one flavor."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The flavor."""
        parser = super().get_parser(prog_name)
        parser.add_argument("flavor", metavar="FLAVOR", help="its id or name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Read the flavor."""
        with self.database.read() as connection:
            return self.dict2columns(fields(_find(connection, parsed_args.flavor)))


class Delete(command.Base):
    """Delete flavors; servers built from them keep their size."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The flavors."""
        parser = super().get_parser(prog_name)
        parser.add_argument("flavors", metavar="FLAVOR", nargs="+", help="its id or name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete all of them or, if one does not exist, none."""

        def delete(connection: Connection) -> None:
            for text in parsed_args.flavors:
                flavors.delete(connection, _find(connection, text).id)

        self.database.write_retrying(delete)


def _find(connection: Connection, id_or_name: str) -> objects.Flavor:
    try:
        return flavors.get_by_flavorid(connection, id_or_name)
    except errors.FlavorNotFound:
        return flavors.get_by_name(connection, id_or_name)
