"""The cell that a host or an instance is in (reference page database, sections 4 and 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.databases import CELL0_UUID, list_cells
from scheduler.db.tables import host_mappings, instance_mappings


def first_cell(connection: Connection) -> objects.CellMapping:
    """The first enabled cell that is not cell0; raises DatabaseNotReady when there is none."""
    for cell in list_cells(connection):
        if cell.uuid != CELL0_UUID and not cell.disabled:
            return cell
    raise errors.DatabaseNotReady(reason="there is no enabled cell in cell_mappings")


def cell0(connection: Connection) -> objects.CellMapping:
    """The cell of instances without a host; raises DatabaseNotReady when there is none."""
    for cell in list_cells(connection):
        if cell.uuid == CELL0_UUID:
            return cell
    raise errors.DatabaseNotReady(reason="there is no cell0 in cell_mappings")


def create_instance_mapping(
    connection: Connection,
    instance_uuid: str,
    project_id: str,
    user_id: str | None = None,
    cell_id: int | None = None,
) -> None:
    """Insert the mapping of a new instance; raises AlreadyExists."""
    with rows.unique("mapping of instance", instance_uuid):
        rows.insert(
            connection,
            instance_mappings,
            instance_uuid=instance_uuid,
            project_id=project_id,
            user_id=user_id,
            cell_id=cell_id,
            queued_for_delete=False,
        )


def get_instance_mapping(connection: Connection, instance_uuid: str) -> Any:
    """The row of that instance, or None; ``cell_id`` is None until it has been scheduled."""
    table = instance_mappings
    query = sa.select(table).where(table.c.instance_uuid == instance_uuid)
    return connection.execute(query).first()


def set_instance_cell(connection: Connection, instance_uuid: str, cell_id: int) -> bool:
    """Note the cell that the instance was scheduled to; False when it has no mapping."""
    criterion = instance_mappings.c.instance_uuid == instance_uuid
    return rows.update(connection, instance_mappings, criterion, cell_id=cell_id) > 0


def delete_instance_mapping(connection: Connection, instance_uuid: str) -> bool:
    """Delete the mapping of that instance; False when it had none."""
    criterion = instance_mappings.c.instance_uuid == instance_uuid
    return connection.execute(instance_mappings.delete().where(criterion)).rowcount > 0


def get_host_mapping(connection: Connection, host: str) -> Any:
    """The row of that host, or None."""
    query = sa.select(host_mappings).where(host_mappings.c.host == host)
    return connection.execute(query).first()


def create_host_mappings(
    connection: Connection, hosts: Iterable[str], cell_id: int | None = None
) -> None:
    """Map those of *hosts* that have no mapping yet to the cell, by default :func:`first_cell`.

    Raises AlreadyExists when another process maps one of them at the same moment: call again.
    """
    wanted = list(dict.fromkeys(hosts))
    query = sa.select(host_mappings.c.host)
    known = {row.host for row in rows.select_in(connection, query, host_mappings.c.host, wanted)}
    new = [host for host in wanted if host not in known]
    if new:
        cell_id = first_cell(connection).id if cell_id is None else cell_id
        with rows.unique("mapping of host", f"{new[0]}, or one of {len(new)}"):
            cells = [{"host": host, "cell_id": cell_id} for host in new]
            rows.insert_many(connection, host_mappings, cells)
