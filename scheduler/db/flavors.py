"""The flavors with their extra specs and projects (reference page database, section 4)."""

from __future__ import annotations

import uuid
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import flavor_extra_specs, flavor_projects, flavors

#: Values of a new row where the object has nothing: the application's defaults.
DEFAULTS: dict[str, Any] = {
    "root_gb": 0,
    "ephemeral_gb": 0,
    "swap": 0,
    "rxtx_factor": 1.0,
    "vcpu_weight": 0,
    "disabled": False,
    "is_public": True,
}


def create(connection: Connection, flavor: objects.Flavor) -> objects.Flavor:
    """Insert *flavor* with its extra specs and projects; return it as it is stored.

    Without a ``flavorid`` it gets a new uuid.  Raises AlreadyExists for a name or flavorid that
    is taken.
    """
    values = {**DEFAULTS, "flavorid": str(uuid.uuid4()), **rows.to_columns(flavor, flavors)}
    with rows.unique("flavor", f"{values['name']} (id {values['flavorid']})"):
        flavor_id = rows.insert(connection, flavors, **values)
    specs = [
        {"flavor_id": flavor_id, "key": key, "value": value}
        for key, value in flavor.extra_specs.items()
    ]
    rows.insert_many(connection, flavor_extra_specs, specs)
    projects = [{"flavor_id": flavor_id, "project_id": project} for project in flavor.projects]
    rows.insert_many(connection, flavor_projects, projects)
    return get_by_id(connection, flavor_id)


def list_all(connection: Connection) -> list[objects.Flavor]:
    """Every flavor, in the order of the ids."""
    return _read(connection)


def get_by_id(connection: Connection, flavor_id: int) -> objects.Flavor:
    """The flavor with that internal id; raises FlavorNotFound."""
    return _one(connection, flavors.c.id == flavor_id, flavor_id)


def get_by_name(connection: Connection, name: str) -> objects.Flavor:
    """The flavor of that name; raises FlavorNotFound."""
    return _one(connection, flavors.c.name == name, name)


def get_by_flavorid(connection: Connection, flavorid: str) -> objects.Flavor:
    """The flavor with that public id; raises FlavorNotFound."""
    return _one(connection, flavors.c.flavorid == flavorid, flavorid)


def delete(connection: Connection, flavor_id: int) -> None:
    """Delete the flavor with its extra specs and projects; raises FlavorNotFound."""
    for table in (flavor_extra_specs, flavor_projects):
        connection.execute(table.delete().where(table.c.flavor_id == flavor_id))
    if not connection.execute(flavors.delete().where(flavors.c.id == flavor_id)).rowcount:
        raise errors.FlavorNotFound(flavor_id=flavor_id)


def _one(
    connection: Connection, criterion: ColumnElement[bool], sought: str | int
) -> objects.Flavor:
    found = _read(connection, criterion)
    if not found:
        raise errors.FlavorNotFound(flavor_id=sought)
    return found[0]


def _read(connection: Connection, *criteria: ColumnElement[bool]) -> list[objects.Flavor]:
    query = sa.select(flavors).where(*criteria).order_by(flavors.c.id)
    found = list(connection.execute(query).mappings())
    ids = [row["id"] for row in found]
    specs: dict[int, dict[str, str]] = {flavor_id: {} for flavor_id in ids}
    projects: dict[int, list[str]] = {flavor_id: [] for flavor_id in ids}
    table = flavor_extra_specs
    for row in rows.select_in(connection, sa.select(table), table.c.flavor_id, ids):
        specs[row.flavor_id][row.key] = row.value
    table = flavor_projects
    for row in rows.select_in(connection, sa.select(table), table.c.flavor_id, ids):
        projects[row.flavor_id].append(row.project_id)
    return [
        rows.to_object(
            objects.Flavor,
            {**row, "root_gb": row["root_gb"] or 0, "ephemeral_gb": row["ephemeral_gb"] or 0},
            extra_specs=specs[row["id"]],
            projects=projects[row["id"]],
        )
        for row in found
    ]
