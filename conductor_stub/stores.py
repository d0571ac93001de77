"""The databases of API and cells, and the rows of an instance before it goes to its host.

Reference pages conductor, section 5 (steps 6.3 to 6.8), and database, sections 2 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import block_devices, build_requests, mappings
from conductor_stub.records import Candidate
from scheduler import errors, objects
from scheduler.db import aggregates, instances, services
from scheduler.db.database import Database
from scheduler.db.databases import CELL0_UUID, Databases

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")
Change = Callable[[Connection, Connection], Result]
"""``change(api, cell)``, with a connection to the API's database and one to that of the cell."""


class Stores:
    """The databases of the API and of the cells."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

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
            mapping = mappings.get_instance_mapping(conn, uuid)
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
            mapping = mappings.get_host_mapping(conn, host)
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


ATTEMPTS_KEY = "nova_scheduler_attempts"
"""The key of the system metadata under which the number of attempts is kept for operators."""
API_BINARY = "nova-osapi_compute"
FIRST_API_WITH_BUILD_REQUESTS = 12
"""The services.version from which on the API deletes a build request to cancel a build."""


@dataclass(frozen=True)
class Prepared:
    """The instance as it is now, and its disks."""

    instance: objects.Instance
    block_devices: objects.BlockDeviceMappingList


@dataclass(frozen=True)
class BuildRows:
    """Writes to *stores*; *default_zone* is the zone of hosts that are in none."""

    stores: Stores
    default_zone: str

    def prepare(
        self, instance: objects.Instance, chosen: Candidate, attempts: int, zone_from_host: bool
    ) -> Prepared | None:
        """Note where *instance* goes; None when the user has cancelled its build meanwhile.

        A first attempt also ends the build request and tells the cell of the host.  Raises
        InstanceNotFound when the instance is gone.
        """

        uuid = instance.uuid
        needs_request = attempts <= 1 and not self._api_is_old()

        def write(api: Connection, cell: Connection) -> Prepared | None:
            row = instances.get(cell, uuid)
            if attempts <= 1 and not _first_attempt(api, uuid, chosen.host, needs_request):
                return None
            if zone_from_host:
                row.availability_zone = self._zone(api, chosen)
                instances.update(cell, uuid, availability_zone=row.availability_zone)
            instances.set_system_metadata(cell, uuid, ATTEMPTS_KEY, str(attempts))
            return Prepared(_refreshed(instance, row), block_devices.of_instance(cell, uuid))

        return self.stores.write(self.stores.of_instance(uuid), write)

    def is_mapped(self, host: str) -> bool:
        """True when *host* is in a cell."""
        with self.stores.api.read() as conn:
            return mappings.get_host_mapping(conn, host) is not None

    def create(self, new: objects.BuildRequest, host: str | None) -> bool:
        """Make the instance that *new* asks for; False when its user has cancelled it.

        It goes to the cell of *host*, and its mapping with it; to cell0 when that is in none.
        """

        def write(api: Connection, cell: Connection) -> bool:
            instance = new.instance
            try:
                build_requests.get(api, instance.uuid)
            except errors.BuildRequestNotFound:
                return False
            instances.create(cell, instance)
            for device in new.block_device_mappings:
                device.instance_uuid = instance.uuid
            block_devices.create(cell, new.block_device_mappings)
            mapping = mappings.get_host_mapping(api, host) if host else None
            cell_id = mapping.cell_id if mapping else mappings.cell0(api).id
            mappings.set_instance_cell(api, instance.uuid, cell_id)
            return True

        return self.stores.write(self.stores.of_host(host), write)

    def destroy(self, uuid: str) -> None:
        """Take the instance back; one that is gone already is fine."""

        def write(conn: Connection) -> None:
            try:
                instances.destroy(conn, uuid)
            except errors.InstanceNotFound:
                LOG.debug("Instance %s is gone already", uuid)

        self.stores.of_instance(uuid).write_retrying(write)

    def _api_is_old(self) -> bool:
        """True when an API may be at work that makes no build requests."""
        with self.stores.main.read() as conn:
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
        return next((zone for zone in zones if zone), self.default_zone)


def _refreshed(instance: objects.Instance, row: objects.Instance) -> objects.Instance:
    """*instance* as the caller sent it, with everything that the rows know better."""
    fresh = instance.copy()
    for name, value in row.set_fields().items():
        setattr(fresh, name, value)
    return fresh


def _first_attempt(conn: Connection, uuid: str, host: str, needs_request: bool) -> bool:
    """Map the instance to *host*'s cell; False without the build request it needs."""
    _map_to_cell(conn, uuid, host)
    try:
        build_requests.destroy(conn, uuid)
    except errors.BuildRequestNotFound:
        if not needs_request:
            LOG.debug("Instance %s has no build request; its API knows none", uuid)
            return True
        LOG.info("The build of instance %s is dropped: its build request was deleted", uuid)
        mappings.delete_instance_mapping(conn, uuid)
        return False
    return True


def _map_to_cell(conn: Connection, uuid: str, host: str) -> None:
    """Tell the instance's mapping the cell of *host*; a host in no cell ends the mapping."""
    host_mapping = mappings.get_host_mapping(conn, host)
    if host_mapping is None:
        mappings.delete_instance_mapping(conn, uuid)
    elif not mappings.set_instance_cell(conn, uuid, host_mapping.cell_id):
        LOG.debug("Instance %s has no mapping", uuid)
