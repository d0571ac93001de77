"""``db``: the tables and their revision, and what the databases are."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler import exit_codes
from scheduler.cli import cells, command
from scheduler.db import inspection, migration

CHECK_COLUMNS = (
    "Named By",
    "URL",
    "Kind",
    "Version",
    "Usable",
    "Writes Service",
    "Missing",
    "Problem",
)
ADVICE_COLUMNS = ("Cell", "Table", "Columns", "Index", "State")
WRITES = {True: "yes", False: "no", None: "not needed"}


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


class Advise(command.List):
    """Say which indexes the reads of changed rows want in each database with compute hosts.

    Nothing is changed without --apply.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """One flag."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--apply",
            action="store_true",
            help="create those that are missing, also in databases that Nova made; "
            "large tables take a while",
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """One row per index; what is there already stays as it is."""
        rows = []
        for cell, database in self.cells.items():
            if not cell and self.databases.has_cells:
                continue  # cell0 or the like: no compute hosts are read from it
            for index in inspection.wanted_indexes(database):
                state = "present" if index.exists else "missing"
                if parsed_args.apply and not index.exists:
                    inspection.create_indexes(database, [index])
                    state = "created"
                columns = ", ".join(index.columns)
                rows.append((cell or None, index.table, columns, index.name, state))
        if all(row[-1] == "present" for row in rows):
            self.app.stderr.write("Nothing is needed.\n")
        return ADVICE_COLUMNS, rows


class Check(command.List):
    """Look at every database that is configured, and at those of the cells.

    The exit status is 1 if one of them cannot be used.
    """

    needs_tables = False

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """One row per database; what is wrong with one is a line on stderr, too."""
        found = inspection.configured(self.databases)
        if all(each.failure is None for each in found):
            found += inspection.cells(self.databases)
        self._is_unusable = any(each.failure is not None for each in found)
        return CHECK_COLUMNS, [self._row(each) for each in found]

    def _row(self, finding: inspection.Finding) -> Sequence[Any]:
        return (
            finding.place,
            finding.url,
            finding.kind,
            finding.version,
            "no" if finding.failure else "yes",
            WRITES[finding.may_write_service],
            cells.Names(finding.missing),
            None if finding.failure is None else str(finding.failure),
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """As any command; FAILURE also when a database cannot be used."""
        self._is_unusable = False
        status = super().run(parsed_args)
        return exit_codes.FAILURE if self._is_unusable else status
