"""Where the rows of an instance are: those of its cell, and those of the API.

In this project's own schema both are in one database; in Nova's, every cell has one of its own
(reference page database, sections 2 and 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from scheduler.db import mappings
from scheduler.db.database import Database
from scheduler.db.databases import Databases

Result = TypeVar("Result")
Change = Callable[[Connection, Connection], Result]
"""``change(api, cell)``, with a connection to the API's database and one to that of the cell."""


class Stores:
    """The databases of the API and of the cells."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    @property
    def api(self) -> Database:
        """What is the same for all cells: build requests, mappings, groups, flavors, aggregates."""
        return self._databases.api

    @property
    def main(self) -> Database:
        """The one of ``[database]``."""
        return self._databases.main

    @property
    def _is_one(self) -> bool:
        return self.api is self.main and not self._databases.has_cells

    def of_instance(self, uuid: str) -> Database:
        """The database that has the instance; of one without a cell, the main one."""
        if self._is_one:
            return self.main
        with self.api.read() as conn:
            mapping = mappings.get_instance_mapping(conn, uuid)
        if mapping is None or mapping.cell_id is None:
            return self.main
        return self._databases.cell_by_id(mapping.cell_id)

    def of_host(self, host: str | None) -> Database:
        """The database that instances on *host* are in; of no host, that of cell0."""
        if self._is_one:
            return self.main
        if host is None:
            return self._databases.cell0()
        with self.api.read() as conn:
            mapping = mappings.get_host_mapping(conn, host)
        return self.main if mapping is None else self._databases.cell_by_id(mapping.cell_id)

    def of_cells(self) -> list[Database]:
        """The databases of all cells with hosts that are not disabled."""
        if self._is_one or not self._databases.has_cells:
            return [self.main]
        cells = self._databases.cells()
        return [self._databases.of_cell(each) for each in cells if not each.disabled]

    def write(self, cell: Database, change: Change[Result]) -> Result:
        """Call *change* in write transactions of the API's database and of *cell*'s.

        They are one where the databases are one.  Otherwise the cell's is committed first, so
        that the API never speaks of what a cell does not have; *change* may run again then.
        """
        if cell is self.api:
            return cell.write_retrying(lambda conn: change(conn, conn))
        return self.api.write_retrying(
            lambda api: cell.write_retrying(lambda conn: change(api, conn))
        )
