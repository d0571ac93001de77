"""Where the instances of a request went, as Placement and the database tell."""

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from scheduler import errors
from scheduler.claims.backend import Request
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.placement.client import Requester, Unavailable
from scheduler.db import instances
from scheduler.db.database import FAILURES
from scheduler.db.databases import CELL0_UUID, Databases
from scheduler.db.tables import cell_mappings, instance_mappings
from scheduler.hosts.candidates import rows_of_nodes
from scheduler.hosts.table import Key

PLACEMENT_SECONDS: Final = 2.0
"""Longest wait for Placement per instance; it is asked again."""


class Outcomes:
    """Reads where instances are: by their allocations, or else by the hosts in their rows."""

    def __init__(self, databases: Databases, driver: Any) -> None:
        self._databases, self._host_manager = databases, driver.host_manager
        claims = driver.claims
        self._client: Any = claims.client if isinstance(claims, PlacementClaims) else None

    def read(self, request: Request, homes: Mapping[str, str]) -> list[Key] | None:
        """The host and node of each instance, none if it was refused; None if that is not known.

        *homes* are the hosts that instances were on before.
        """
        if not (request.names and request.takes_hosts):
            return None
        find = self._by_row if self._client is None else self._by_allocations
        try:
            keys = [find(request, uuid, homes.get(uuid)) for uuid in request.names]
            if not any(keys):
                return [] if self._are_refused(request) else None
        except (Unavailable, *FAILURES, errors.NovaException):
            return None  # decisions say in the log what is away
        return [each[0] for each in keys] if all(len(each) == 1 for each in keys) else None

    def _by_allocations(self, request: Request, uuid: str, _home: str | None) -> list[Key]:
        """Nodes with allocations, but for those that the request rules out as its source."""
        requester = Requester(None, None, None).within(PLACEMENT_SECONDS)
        allocated = self._client.allocations(uuid, requester).get("allocations") or {}
        ruled_out = {each.lower() for each in request.spec.ignore_hosts or ()}
        with self._host_manager.lock:
            table = self._host_manager.table
            keys = [table.keys[row] for row in rows_of_nodes(table, allocated).tolist()]
        return [key for key in keys if key[0].lower() not in ruled_out]

    def _by_row(self, _request: Request, uuid: str, home: str | None) -> list[Key]:
        with self._host_manager.lock:
            table = self._host_manager.table
            host = table.host_of_instance.get(uuid)
            if host in (None, home):
                return []
            keys = [table.keys[row] for row in table.row_numbers((host,))]
            node = table.instances[host][uuid].node
        return [key for key in keys if node in (None, key[1])]

    def _are_refused(self, request: Request) -> bool:
        """True when the conductor has given all of them up before they were on any host."""
        names = request.names
        if not self._databases.has_cells:
            with self._databases.main.read() as connection:
                rows = instances.rows_by_uuid(connection, names).values()
            return [each.vm_state for each in rows if each.host is None] == ["error"] * len(names)
        cell = instance_mappings.c.cell_id == cell_mappings.c.id
        buried = sa.select(sa.func.count()).where(cell, cell_mappings.c.uuid == CELL0_UUID)
        with self._databases.api.read() as connection:
            these = buried.where(instance_mappings.c.instance_uuid.in_(names))
            return connection.execute(these).scalar() == len(names)
