"""The flavors with their extra specs and projects (reference page database, section 4)."""

import uuid
from typing import Any

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
    """Insert *flavor*, with a uuid unless it has a ``flavorid``; AlreadyExists for one taken."""
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
    return get(connection, "id", flavor_id)


def get(connection: Connection, column: str, value: str | int) -> objects.Flavor:
    """The flavor with *value* in *column*, which is unique; raises FlavorNotFound."""
    found = list_all(connection, flavors.c[column] == value)
    if not found:
        raise errors.FlavorNotFound(flavor_id=value)
    return found[0]


def delete(connection: Connection, flavor_id: int) -> None:
    """Delete the flavor with its extra specs and projects; raises FlavorNotFound."""
    for table in (flavor_extra_specs, flavor_projects):
        connection.execute(table.delete().where(table.c.flavor_id == flavor_id))
    if not connection.execute(flavors.delete().where(flavors.c.id == flavor_id)).rowcount:
        raise errors.FlavorNotFound(flavor_id=flavor_id)


def list_all(connection: Connection, *criteria: ColumnElement[bool]) -> list[objects.Flavor]:
    """Those that meet all *criteria*, in the order of the ids."""
    found = rows.read(connection, flavors, *criteria)
    ids, tables = [row["id"] for row in found], (flavor_extra_specs, flavor_projects)
    specs, projects = rows.children(connection, "flavor_id", ids, *tables)
    return [
        rows.to_object(
            objects.Flavor,
            {**row, "root_gb": row["root_gb"] or 0, "ephemeral_gb": row["ephemeral_gb"] or 0},
            extra_specs={each.key: each.value for each in specs[row["id"]]},
            projects=[each.project_id for each in projects[row["id"]]],
        )
        for row in found
    ]
