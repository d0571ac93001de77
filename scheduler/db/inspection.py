"""Checks of the configured databases, for the start and for operators.

One finding per database: that of ``[database]``, that of ``[api_database]``, and each cell's.
Missing indexes are created only when an operator asks for it.
"""

import dataclasses
import functools
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_log import log as logging

from scheduler import errors
from scheduler.db import migration, tables
from scheduler.db import url as db_url
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.db.fleet_rows import NEEDED_COLUMNS, is_complete
from scheduler.db.layout import API_TABLES, CELL_TABLES, NEEDED_TABLES
from scheduler.db.migrations import VERSION_TABLE
from scheduler.threads import in_thread

LOG = logging.getLogger(__name__)

#: Without these an API database does not tell what a scheduler has to know.
NEEDED_API_TABLES = ("aggregates", "aggregate_hosts", "aggregate_metadata")
#: Tables that claims are in.
CLAIM_TABLES = ("claims", "claim_hosts")

#: Table and columns of the indexes that reads of changed rows use.
#: Nova's own databases have none on timestamps: there such reads scan whole tables.
_INDEXES: dict[str, tuple[str, ...]] = {
    "compute_nodes": ("updated_at", "created_at", "deleted_at", "deleted id"),
    "services": ("updated_at", "binary deleted id", "deleted disabled", "deleted forced_down"),
    "instances": ("updated_at", "created_at", "deleted_at"),
}

_LIVING = sa.select(*NEEDED_COLUMNS).where(tables.compute_nodes.c.deleted == 0)

NOVA, OURS = "a Nova database", "a database of this project"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of the check of one database.

    *place* is the option or the cell that names it, *failure* why it cannot be used: one line
    without secrets.  *missing* are tables and ``table.column`` that are not there, *incomplete*
    the number of compute nodes without host, name or uuid, or with a bad number or time.
    """

    place: str
    url: str
    kind: str = ""
    version: str | None = None
    missing: tuple[str, ...] = ()
    incomplete: int = 0
    may_write_service: bool | None = None
    failure: errors.NovaException | None = None

    @property
    def is_nova(self) -> bool:
        return self.kind == NOVA

    def line(self) -> str:
        if self.failure is not None:
            return f"{self.place}: {self.failure}"
        is_one = f"{self.place}: {self.url} is {self.kind} (version {self.version})"
        if not self.missing:
            return f"{is_one}; it has everything that is read"
        lacks = f"{len(self.missing)} tables or columns, which count as NULL"
        return f"{is_one}; it lacks {lacks}: {', '.join(self.missing)}"


def configured(databases: Databases, claimed: Database | None = None) -> list[Finding]:
    """Findings for the main and API databases, and for the one of claims where it is another."""
    main, api = databases.main, databases.api
    of_interest = (*CELL_TABLES, *API_TABLES) if api is main else CELL_TABLES
    found = [_examine(main, main.option, (NEEDED_TABLES, of_interest))]
    if found[0].failure is None and not main.is_read_only:
        found = [dataclasses.replace(found[0], may_write_service=_may_write_service(main))]
    if api is not main:
        found.append(_examine(api, api.option, (NEEDED_API_TABLES, API_TABLES)))
    if claimed is not None:
        found.append(_examine(claimed, claimed.option, (CLAIM_TABLES, CLAIM_TABLES)))
    return found


def cells(databases: Databases) -> list[Finding]:
    """Findings for the cells' databases; empty for an undivided fleet."""
    if not databases.has_cells:
        return []
    asked: list[tuple[str, str, Future[Finding]]] = []
    found: list[Finding] = []
    for cell in databases.cells():
        place = f"cell {cell.name} ({cell.uuid})" + (", disabled" if cell.disabled else "")
        try:
            database = databases.of_cell(cell)
        except errors.ConfigurationError as error:
            found.append(Finding(place, "", failure=error))
            continue
        examine = functools.partial(_examine, database, place, (NEEDED_TABLES, CELL_TABLES))
        asked.append((place, database.masked_url, in_thread(examine)))
    for place, url, attempt in asked:
        try:
            found.append(attempt.result(databases.cell_timeout_seconds))
        except TimeoutError:
            seconds = databases.cell_timeout_seconds
            reason = f"{url} cannot be used: no answer within {seconds:.0f} s"
            silent = errors.ConfigurationError(option=place, reason=reason)
            found.append(Finding(place, url, failure=silent))
    return found


def _examine(
    database: Database, place: str, wanted: tuple[Iterable[str], Iterable[str]]
) -> Finding:
    needed, of_interest = wanted
    url = database.masked_url
    weakness = db_url.tls_weakness(database.url)
    if weakness is not None:
        LOG.warning("%s: %s", place, weakness)
    try:
        migration.check_ready(database, needed)
        layout = database.layout
        with database.read() as connection:
            for table in needed:  # whether it may be read
                connection.execute(sa.select(tables.metadata.tables[table]).where(sa.false()))
            kind = NOVA if layout.is_nova else OURS
            version = migration.revision_of(connection, layout.version_table or VERSION_TABLE)
            nodes = connection.execute(_LIVING) if needed == NEEDED_TABLES else ()
            incomplete = sum(not is_complete(row) for row in nodes)
    except (errors.NovaException, *FAILURES) as error:
        return Finding(place, url, failure=database.unusable(error))
    return Finding(place, url, kind, version, tuple(layout.missing(of_interest)), incomplete)


def _may_write_service(database: Database) -> bool:
    """Return whether the row of a service may be written; nothing is."""
    services = tables.services
    nothing = sa.select(services.c.host, services.c.report_count).where(sa.false())
    try:
        with database.write() as connection:
            same = {"report_count": services.c.report_count}
            connection.execute(sa.update(services).where(sa.false()).values(same))
            connection.execute(sa.insert(services).from_select(["host", "report_count"], nothing))
    except FAILURES:
        return False
    return True


def wanted_indexes(database: Database) -> dict[sa.Index, bool]:
    """The indexes that help, as far as *database* has their columns; True if one begins so."""
    found = {}
    with database.read() as connection:
        for name, wanted in _INDEXES.items():
            there = sa.Table(name, sa.MetaData(), autoload_with=connection, resolve_fks=False)
            uniques = [each for each in there.constraints if isinstance(each, sa.UniqueConstraint)]
            keys = [[*each.columns.keys()] for some in (there.indexes, uniques) for each in some]
            for columns in map(str.split, wanted):
                if {*columns} <= {*there.c.keys()}:
                    called = "_".join((name, *columns, "idx"))
                    index = sa.Index(called, *(there.c[each] for each in columns))
                    found[index] = any(each[: len(columns)] == columns for each in keys)
    return found
