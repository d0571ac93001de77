"""The databases: main, API and cells, and which tables each one has.

This project's own schema has all tables in one.  Nova's has the tables of a cell in each cell's
database, and the rest in the API database (reference page database, sections 2 and 7).
"""

import threading
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Self

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection, select

from scheduler import errors, objects
from scheduler.conf import database as database_conf
from scheduler.db import rows, services
from scheduler.db import url as db_url
from scheduler.db.database import Database, configured_settings
from scheduler.db.limits import TransactionLimits
from scheduler.db.tables import cell_mappings, compute_nodes, host_mappings

LOG = logging.getLogger(__name__)

API_OPTION = "[api_database] connection"
CLAIMS_OPTION = "[claims] connection"
#: The cell of the instances that never got a host; never scheduled to.
CELL0_UUID = str(uuid.UUID(int=0))


class Databases:
    """``main`` is that of ``[database]``, ``api`` that of ``[api_database]`` or else the same."""

    def __init__(
        self,
        main: Database,
        api: Database | None = None,
        *,
        base_url: str | None = None,
        cell_timeout_seconds: int = 60,
    ) -> None:
        """*base_url* fills the templates of ``cell_mappings``."""
        self.main = main
        self.api = api or main
        self._base_url = base_url
        self.cell_timeout_seconds = cell_timeout_seconds
        self._of_url: dict[str, Database] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, *, for_command: bool = False) -> Self:
        """The configured databases; nothing connects yet.  Raises ConfigurationError."""
        main = Database.from_conf(conf, for_command=for_command)
        settings = configured_settings(conf, database_conf.API_GROUP)
        url, seconds = settings["connection"], conf.scheduler.cell_timeout_seconds
        api = main.sibling(url, API_OPTION, settings=settings) if url else None
        return cls(main, api, base_url=conf.database.connection, cell_timeout_seconds=seconds)

    @property
    def all(self) -> tuple[Database, ...]:
        return (self.main,) if self.api is self.main else (self.main, self.api)

    @property
    def has_cells(self) -> bool:
        """True when the compute hosts are in the databases that ``cell_mappings`` names.

        Not in this project's own schema, nor before Nova's release 16, whose discovery of hosts
        came with the column ``compute_nodes.mapped``: there they are in the main one.
        """
        layout = self.main.layout
        api = self.api.layout
        has_mappings = api.is_nova and api.has("cell_mappings")
        return has_mappings and layout.is_nova and layout.has("compute_nodes", "mapped")

    @property
    def lacks_api(self) -> bool:
        """True when the main database is a cell of a Nova whose API database is not configured."""
        layout = self.main.layout
        return self.api is self.main and layout.is_nova and layout.has("compute_nodes", "mapped")

    @property
    def aggregates_are_in_both(self) -> bool:
        """True when the main database has aggregates besides the API's: until release 17."""
        main, api = self.main.layout, self.api.layout
        has_old = main.has("aggregates") and "aggregates" in main.soft_deleted
        return self.api is not self.main and has_old and not api.has("cell_mappings", "disabled")

    def cells(self) -> Sequence[objects.CellMapping]:
        """The cells with compute hosts, disabled ones included, in the order of the ids."""
        with self.api.read() as connection:
            found = list_cells(connection)
        return [each for each in found if each.uuid != CELL0_UUID]

    def of_cell(self, cell: objects.CellMapping) -> Database:
        """The database of that cell, the main one without a URL; raises ConfigurationError."""
        if not cell.is_set("database_connection"):
            return self.main
        option = f"cell_mappings.database_connection of cell {cell.uuid}"
        text = db_url.fill_template(
            cell.database_connection, self._base_url, "database_connection", "[database]/connection"
        )
        with self._lock:
            if text not in self._of_url:
                url = db_url.with_timeout(db_url.parse(text, option), self.cell_timeout_seconds)
                self._of_url[text] = self.main.sibling(
                    url, option, settings={"max_retries": 0}, silence_timeout_seconds=0
                )
            return self._of_url[text]

    def dispose(self) -> None:
        with self._lock:
            of_cells = list(self._of_url.values())
        for database in (*self.all, *of_cells):
            database.dispose()


def list_cells(connection: sa.Connection) -> list[objects.CellMapping]:
    """Every cell, cell0 and disabled ones included, in the order of the ids."""
    return [
        rows.to_object(objects.CellMapping, row) for row in rows.read(connection, cell_mappings)
    ]


def claims_database(conf: cfg.ConfigOpts, database: Database) -> Database:
    """The database of ``[claims] connection``, else *database*; raises ConfigurationError.

    On a server it has connections of its own, which keep no lock for long.
    """
    url, options = conf.claims.connection, conf.claims
    if not url and database.dialect_name == "sqlite":
        return database
    claimed = database.sibling(
        url or database.url,
        CLAIMS_OPTION if url else database.option,
        is_read_only=not url and database.is_read_only,
        limits=TransactionLimits(options.idle_transaction_seconds, options.lock_wait_seconds),
    )
    database.remember(claimed)
    return claimed


def discover_hosts(conf: cfg.ConfigOpts, databases: Databases, binary: str) -> None:
    """Map the hosts of a Nova that no cell has yet, for one scheduler of several at a time.

    That is the first by name of those that are up, as among Nova's schedulers.  A cell that cannot
    be used is left to the next run.
    """
    if not databases.has_cells:
        return
    with databases.main.read() as connection:
        known = services.list_all(connection, binary)
    alive = [each.host for each in known if services.is_up(each, conf.service_down_time)]
    if min(alive, default=conf.host) < conf.host:
        return
    mapped: list[str] = []
    for cell in databases.cells():
        try:
            database = databases.of_cell(cell)
            with database.naming_itself():
                _map_hosts(cell, database, databases.api, mapped)
        except errors.ConfigurationError as problem:
            LOG.warning("Hosts of cell %s are not mapped: %s", cell.name or cell.uuid, problem)
    if mapped:
        LOG.info("Discovered %d new hosts: %s", len(mapped), ",".join(mapped))


def _map_hosts(
    cell: objects.CellMapping, database: Database, api: Database, mapped: list[str]
) -> None:
    """Map the new hosts of *cell*; those that nobody else has mapped are added to *mapped*."""
    living = (compute_nodes.c.deleted == 0, compute_nodes.c.mapped < 1)
    with database.read() as connection:
        query = select(compute_nodes.c.id, compute_nodes.c.host).where(*living)
        hosts = {row.id: row.host for row in connection.execute(query) if row.host}
    for host in sorted(set(hosts.values())):
        try:
            api.write_retrying(
                partial(rows.insert, table=host_mappings, host=host, cell_id=cell.id)
            )
            LOG.info("Host %s is mapped to cell %s (%s)", host, cell.name, cell.uuid)
            mapped.append(f"{cell.name}:{host}")
        except db_exception.DBDuplicateEntry:
            LOG.debug("Host %s was mapped before", host)

    def note(connection: Connection) -> None:
        for some in rows.in_batches(list(hosts)):
            rows.update(connection, compute_nodes, compute_nodes.c.id.in_(some), mapped=1)

    if hosts:
        database.write_retrying(note)
