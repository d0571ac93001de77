"""``db``: the tables and their revision, and what the databases are."""

from collections.abc import Sequence
from typing import Any

from scheduler import exit_codes
from scheduler.cli.command import Base, List, Names, Text, action, argument, on_tables
from scheduler.db import inspection, migration
from scheduler.db.databases import claims_database
from scheduler.db.migration import SYNC_COMMAND

WRITES = {True: "yes", False: "no", None: "not needed"}


@action(
    Text,
    argument("revision", nargs="?", default="head", help="default: the newest"),
    words="{url} is at revision {revision}.",
)
def sync(command: Base, args: Any) -> dict[str, Any]:
    """Create the tables, or upgrade them to what this release needs."""
    migration.sync(command.database, args.revision)
    return {"url": command.database.masked_url, "revision": migration.version(command.database)}


@action(Text)
def version(command: Text, _args: Any) -> dict[str, Any]:
    """Print the revision of the tables."""
    revision = migration.version(command.database)
    command.words = "{revision}" if revision else f"There are no tables; see {SYNC_COMMAND}."
    return {"revision": revision}


@on_tables(
    List,
    argument(
        "--apply",
        action="store_true",
        help="create those that are missing, also in databases that Nova made; "
        "large tables take a while",
    ),
    columns=("Cell", "Table", "Columns", "Index", "State"),
    nothing="There are no databases with compute hosts.",
)
def advise(command: Base, args: Any) -> Any:
    """Say which indexes the reads of changed rows want in each database with compute hosts.

    Nothing is changed without --apply.
    """
    rows = []
    for cell, database in command.cells.items():
        if not cell and command.databases.has_cells:
            continue  # cell0 or the like: no compute hosts are read from it
        for index, exists in inspection.wanted_indexes(database).items():
            state = "present" if exists else "missing"
            if args.apply and not exists:
                with database.write() as connection:
                    index.create(connection)
                state = "created"
            columns = ", ".join(index.columns.keys())
            rows.append((cell or None, str(index.table), columns, index.name, state))
    if all(row[-1] == "present" for row in rows):
        command.app.stderr.write("Nothing is needed.\n")
    return rows


@action(
    List,
    columns=(
        *("Named By", "URL", "Kind", "Version", "Usable"),
        *("Writes Service", "Missing", "Incomplete Nodes", "Problem"),
    ),
    nothing="The configuration names no database.",
)
def check(command: Base, _args: Any) -> Any:
    """Look at every database that is configured, and at those of the cells.

    The exit status is 1 if one of them cannot be used.
    """
    is_other = command.conf.claims.connection
    claimed = claims_database(command.conf, command.database) if is_other else None
    found = inspection.configured(command.databases, claimed)
    if all(each.failure is None for each in found):
        found += inspection.cells(command.databases)
    if any(each.failure is not None for each in found):
        command.status = exit_codes.FAILURE
    return map(_row, found)


def _row(finding: inspection.Finding) -> Sequence[Any]:
    return (
        *(finding.place, finding.url, finding.kind, finding.version),
        "no" if finding.failure else "yes",
        WRITES[finding.may_write_service],
        Names(list(finding.missing)),
        finding.incomplete,
        None if finding.failure is None else str(finding.failure),
    )
