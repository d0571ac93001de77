"""``db``: the tables and their revision, and what the databases are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from scheduler import exit_codes
from scheduler.cli import command
from scheduler.cli.command import Names, Table, argument
from scheduler.db import inspection, migration

CHECK_COLUMNS = (
    *("Named By", "URL", "Kind", "Version", "Usable"),
    *("Writes Service", "Missing", "Problem"),
)
ADVICE_COLUMNS = ("Cell", "Table", "Columns", "Index", "State")
WRITES = {True: "yes", False: "no", None: "not needed"}


class Sync(command.Base):
    """Create the tables, or upgrade them to what this release needs."""

    needs_tables = False
    arguments = (argument("revision", nargs="?", default="head", help="default: the newest"),)

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

    arguments = (
        argument(
            "--apply",
            action="store_true",
            help="create those that are missing, also in databases that Nova made; "
            "large tables take a while",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
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

    def take_action(self, parsed_args: argparse.Namespace) -> Table:  # noqa: ARG002
        """One row per database."""
        found = inspection.configured(self.databases)
        if all(each.failure is None for each in found):
            found += inspection.cells(self.databases)
        if any(each.failure is not None for each in found):
            self.status = exit_codes.FAILURE
        return CHECK_COLUMNS, [_row(each) for each in found]


def _row(finding: inspection.Finding) -> Sequence[Any]:
    return (
        *(finding.place, finding.url, finding.kind, finding.version),
        "no" if finding.failure else "yes",
        WRITES[finding.may_write_service],
        Names(finding.missing),
        None if finding.failure is None else str(finding.failure),
    )
