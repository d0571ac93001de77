"""A fleet read from databases once, with the servers on its hosts and what they asked for."""

import json
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.db import groups
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.db.rows import in_batches, select_in
from scheduler.db.tables import instance_extra, instances, request_specs
from scheduler.replay.virtual_fleet import VirtualClock, VirtualFleet

_COLUMNS: Final = (
    *(instances.c.uuid, instances.c.host, instances.c.project_id, instances.c.user_id),
    *(instances.c.memory_mb, instances.c.vcpus, instances.c.root_gb, instances.c.ephemeral_gb),
    *(instances.c.vm_state, instances.c.task_state),
    *(instance_extra.c.flavor, instance_extra.c.numa_topology, instance_extra.c.pci_requests),
)
_STORED: Final = (request_specs.c.instance_uuid, request_specs.c.spec)
_NO_TEXT: Final = frozenset((None, "", "null", "[]"))


def read(
    conf: Any, databases: Databases, seconds: float = math.inf
) -> tuple[VirtualFleet, dict[str, str]]:
    """The fleet, and the servers that cannot be taken away there, each with the reason.

    Raises what reading raises where a database is away, InvalidRequest if it has no host, and
    TimeoutError if servers are left after *seconds*.
    """
    ends_at = time.monotonic() + seconds
    fleet = VirtualFleet(conf, CellsReader(conf, databases), VirtualClock(time.time()))
    if not fleet.table.rows_of_host:
        url = databases.main.masked_url
        raise errors.InvalidRequest(field=url, reason="there is no compute host in it")
    left_out: dict[str, str] = {}
    with databases.api.read() as connection:
        requests = _Requests(
            {uuid: each for each in groups.list_all(connection) for uuid in each.members or ()}
        )
    for database in _with_instances(databases):
        with database.read() as connection:
            servers = _servers(connection)
        for some in in_batches(servers):
            if time.monotonic() > ends_at:
                raise TimeoutError("there are too many servers")
            with databases.api.read() as connection:
                uuids = [row.uuid for row in some]
                stored = select_in(connection, sa.select(*_STORED), _STORED[0], uuids)
                texts = {row.instance_uuid: row.spec for row in stored}
            for row in some:
                if reason := _adopt(fleet, row, requests.of(row, texts.get(row.uuid))):
                    left_out[row.uuid] = reason
    return fleet, left_out


def _with_instances(databases: Databases) -> Iterator[Database]:
    if not databases.has_cells:
        yield databases.main
        return
    for cell in databases.cells():
        if not cell.disabled:
            yield databases.of_cell(cell)


def _servers(connection: Connection) -> list[Any]:
    query = (
        sa.select(*_COLUMNS)
        .outerjoin(instance_extra, instance_extra.c.instance_uuid == instances.c.uuid)
        .where(instances.c.deleted == 0, instances.c.host.is_not(None))
        .order_by(instances.c.id)
    )
    return list(connection.execute(query))


def _adopt(fleet: VirtualFleet, row: Any, spec: objects.RequestSpec | None) -> str | None:
    """Let the server of *row* be taken away; else the reason why it cannot be."""
    if row.task_state is not None:
        return f"it is at work ({row.task_state})"
    if spec is None:
        return "its flavor is not known"
    if row.numa_topology not in _NO_TEXT or row.pci_requests not in _NO_TEXT:
        return "it has cells or devices of its own"
    try:
        fleet.adopt(row.uuid, spec)
    except (KeyError, ValueError) as error:
        return f"its host's report does not tell what it takes ({error})"
    return None


class _Requests:
    """The requests of servers; those that differ in nothing but the server are one object."""

    def __init__(self, group_of: Mapping[str, objects.InstanceGroup]) -> None:
        self._group_of = group_of
        self._known: dict[Any, objects.RequestSpec | None] = {}

    def of(self, row: Any, text: str | None) -> objects.RequestSpec | None:
        """The request of a server from the *text* that was stored, else one made of its row."""
        group = self._group_of.get(row.uuid)
        text = None if text is None else text.replace(row.uuid, "")
        sizes = (row.memory_mb, row.vcpus, row.root_gb, row.ephemeral_gb)
        key = (text, row.flavor or sizes, row.project_id, row.user_id, group and group.uuid)
        if key not in self._known:
            self._known[key] = self._made(row, text, group)
        return self._known[key]

    @staticmethod
    def _made(
        row: Any, text: str | None, group: objects.InstanceGroup | None
    ) -> objects.RequestSpec | None:
        flavor = _flavor(row)
        if flavor is None:
            return None
        try:
            found = json.loads(text) if text else None
            spec = objects.RequestSpec() if found is None else objects.from_primitive(found)
        except (errors.NovaException, ValueError, TypeError):
            spec = objects.RequestSpec()
        spec.flavor, spec.num_instances = flavor, 1
        spec.project_id, spec.user_id, spec.instance_group = row.project_id, row.user_id, group
        return spec


def _flavor(row: Any) -> objects.Flavor | None:
    if row.flavor:
        try:
            flavor = objects.from_primitive(json.loads(row.flavor)["cur"])
        except (errors.NovaException, LookupError, ValueError, TypeError):
            return None
        return flavor if isinstance(flavor, objects.Flavor) else None
    sizes = {name: getattr(row, name) or 0 for name in ("memory_mb", "vcpus")}
    disks = {name: getattr(row, name) or 0 for name in ("root_gb", "ephemeral_gb")}
    return objects.Flavor(id=0, name="", swap=0, extra_specs={}, **sizes, **disks)
