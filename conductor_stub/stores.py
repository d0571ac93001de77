"""The databases of API and cells, and the rows of an instance before it goes to its host.

Reference pages conductor, section 5 (steps 6.3 to 6.8), and database, sections 2 and 7.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import server_rows
from conductor_stub.records import Candidate
from scheduler import errors, objects
from scheduler.db import aggregates, instances, services
from scheduler.db.database import Database
from scheduler.db.databases import CELL0_UUID, Databases

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Callable[[Connection, Connection], Result]
"""``change(api, cell)``, with a connection to the API's database and one to that of the cell."""


API_BINARY = "nova-osapi_compute"
FIRST_API_WITH_BUILD_REQUESTS = 12
"""The services.version from which on the API deletes a build request to cancel a build."""


class Stores:
    """The databases of the API and of the cells; hosts in no zone are in *default_zone*."""

    def __init__(self, databases: Databases, default_zone: str = "nova") -> None:
        self._databases = databases
        self._default_zone = default_zone

    @property
    def api(self) -> Database:
        """The database of build requests, mappings, groups, flavors and aggregates."""
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
            mapping = server_rows.get_instance_mapping(conn, uuid)
        if mapping is None or mapping.cell_id is None:
            return self.main
        return self._databases.cell(mapping.cell_id)

    def of_host(self, host: str | None) -> Database:
        """The database that instances on *host* are in; of no host, that of cell0."""
        if self._is_one:
            return self.main
        if host is None:
            return self._databases.cell(CELL0_UUID)
        with self.api.read() as conn:
            mapping = server_rows.get_host_mapping(conn, host)
        return self.main if mapping is None else self._databases.cell(mapping.cell_id)

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

    def prepare_build(
        self, instance: objects.Instance, chosen: Candidate, attempts: int, zone_from_host: bool
    ) -> tuple[objects.Instance, objects.BlockDeviceMappingList] | None:
        """Note where *instance* goes; the instance as it is now, and its disks.

        None when the user has cancelled its build meanwhile.  A first attempt also ends the build
        request and tells the cell of the host.  Raises InstanceNotFound when it is gone.
        """
        uuid = instance.uuid
        needs_request = attempts <= 1 and not self._api_is_old()

        def write(api: Connection, cell: Connection) -> Any:
            row = instances.get(cell, uuid)
            if attempts <= 1 and not _first_attempt(api, uuid, chosen.host, needs_request):
                return None
            if zone_from_host:
                row.availability_zone = self._zone(api, chosen)
                instances.update(cell, uuid, availability_zone=row.availability_zone)
            instances.set_system_metadata(cell, uuid, server_rows.ATTEMPTS_KEY, str(attempts))
            fresh = instance.copy()  # the rows know better than the caller
            for name, value in row.set_fields().items():
                setattr(fresh, name, value)
            return fresh, server_rows.disks_of(cell, uuid)

        return self.write(self.of_instance(uuid), write)

    def create_server(self, new: objects.BuildRequest, host: str | None) -> bool:
        """Make the instance that *new* asks for; False when its user has cancelled it.

        It goes to the cell of *host*, and its mapping with it; to cell0 without one.  Raises
        HostMappingNotFound when the host is in no cell.
        """

        def write(api: Connection, cell: Connection) -> bool:
            instance = new.instance
            mapping = server_rows.get_host_mapping(api, host) if host else None
            if host and mapping is None:
                raise errors.HostMappingNotFound(name=host)
            if not server_rows.list_build_requests(api, [instance.uuid]):
                return False
            instances.create(cell, instance)
            for disk in new.block_device_mappings:
                disk.instance_uuid = instance.uuid
            server_rows.create_disks(cell, new.block_device_mappings)
            cell_id = mapping.cell_id if mapping else server_rows.cell0(api).id
            server_rows.set_instance_cell(api, instance.uuid, cell_id)
            return True

        return self.write(self.of_host(host), write)

    def _api_is_old(self) -> bool:
        """True when an API may be at work that makes no build requests."""
        with self.main.read() as conn:
            known = [service.version for service in services.list_all(conn, binary=API_BINARY)]
        return bool(known) and min(known) < FIRST_API_WITH_BUILD_REQUESTS

    def _zone(self, conn: Connection, chosen: Candidate) -> str | None:
        selection = chosen.selection
        if selection is not None and selection.is_set("availability_zone"):
            return selection.availability_zone
        zones = (
            aggregate.availability_zone
            for aggregate in aggregates.list_all(conn)
            if chosen.host in aggregate.hosts
        )
        return next((zone for zone in zones if zone), self._default_zone)


def _first_attempt(conn: Connection, uuid: str, host: str, needs_request: bool) -> bool:
    """Map the instance to *host*'s cell; False without the build request it needs.

    A host in no cell, and a build that is cancelled, end the mapping.
    """
    mapping = server_rows.get_host_mapping(conn, host)
    is_wanted = server_rows.delete_build_request(conn, uuid) or not needs_request
    if not is_wanted:
        LOG.info("The build of instance %s is dropped: its build request was deleted", uuid)
    if mapping is None or not is_wanted:
        server_rows.delete_instance_mapping(conn, uuid)
    elif not server_rows.set_instance_cell(conn, uuid, mapping.cell_id):
        LOG.debug("Instance %s has no mapping", uuid)
    return is_wanted
