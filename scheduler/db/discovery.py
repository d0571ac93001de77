"""Mapping of new compute hosts to the cells they are in (reference page database, section 7)."""

from functools import partial

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection, select

from scheduler import objects
from scheduler.db import rows, services
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.db.tables import compute_nodes, host_mappings

LOG = logging.getLogger(__name__)


class HostDiscovery:
    """Maps the hosts of a Nova that no cell has yet, for one scheduler of several at a time.

    That is the first by name of those that are up, as among Nova's schedulers.
    """

    def __init__(self, conf: cfg.ConfigOpts, databases: Databases, binary: str) -> None:
        self._conf, self._databases, self._binary = conf, databases, binary

    def run(self) -> None:
        """Map what is new; a cell that cannot be used is left to the next run."""
        if not self._databases.has_cells or not self._is_first():
            return
        for cell in self._databases.cells():
            database = self._databases.of_cell(cell)
            try:
                self._map(cell, database)
            except FAILURES as error:
                problem = database.unusable(error)
                LOG.warning("Hosts of cell %s are not mapped: %s", cell.name or cell.uuid, problem)

    def _is_first(self) -> bool:
        with self._databases.main.read() as connection:
            known = services.list_all(connection, self._binary)
        down_time = self._conf.service_down_time
        alive = [each.host for each in known if services.is_up(each, down_time)]
        return min(alive, default=self._conf.host) >= self._conf.host

    def _map(self, cell: objects.CellMapping, database: Database) -> None:
        living = (compute_nodes.c.deleted == 0, compute_nodes.c.mapped < 1)
        with database.read() as connection:
            query = select(compute_nodes.c.id, compute_nodes.c.host).where(*living)
            hosts = {row.id: row.host for row in connection.execute(query) if row.host}
        for host in sorted(set(hosts.values())):
            try:
                self._databases.api.write_retrying(
                    partial(rows.insert, table=host_mappings, host=host, cell_id=cell.id)
                )
                LOG.info("Host %s is mapped to cell %s (%s)", host, cell.name, cell.uuid)
            except db_exception.DBDuplicateEntry:
                LOG.debug("Host %s was mapped before", host)

        def note(connection: Connection) -> None:
            for some in rows.in_batches(list(hosts)):
                rows.update(connection, compute_nodes, compute_nodes.c.id.in_(some), mapped=1)

        if hosts:
            database.write_retrying(note)
