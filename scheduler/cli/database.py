"""``db``: the tables and their revision."""

from __future__ import annotations

import argparse

from scheduler.cli import command
from scheduler.db import migration


class Sync(command.Base):
    """Create the tables, or upgrade them to what this release needs."""

    needs_tables = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """One optional argument: the revision."""
        parser = super().get_parser(prog_name)
        parser.add_argument("revision", nargs="?", default="head", help="default: the newest")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Bring the tables to the revision."""
        migration.sync(self.database, parsed_args.revision)


class Version(command.Base):
    """Print the revision of the tables; nothing if there are none."""

    needs_tables = False

    def take_action(self, parsed_args: argparse.Namespace) -> None:  # noqa: ARG002
        """Print the revision."""
        revision = migration.version(self.database)
        if revision is not None:
            self.app.stdout.write(f"{revision}\n")
