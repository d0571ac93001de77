"""The system metadata of instances, as far as anybody looks at it: properties of their images."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from scheduler.db import tables

#: Keys of an instance's system metadata that hold properties of its image.
IMAGE_KEY_PREFIX = "image_"


def metadata_prefix_for(conf: Any) -> str | None:
    """How the keys that are wanted begin; None unless a weigher looks at images."""
    weighs_images = conf.filter_scheduler.image_props_weight_multiplier != 0
    return IMAGE_KEY_PREFIX if weighs_images else None


def metadata_where(
    connection: sa.Connection, prefix: str | None, condition: sa.ColumnElement[bool]
) -> dict[str, dict[str, str | None]]:
    """By uuid what keys with *prefix* hold of the instances that *condition* selects."""
    found: dict[str, dict[str, str | None]] = {}
    if prefix is None:
        return found
    table = tables.instance_system_metadata
    query = (
        sa.select(table.c.instance_uuid, table.c.key, table.c.value)
        .join(tables.instances, tables.instances.c.uuid == table.c.instance_uuid)
        .where(
            condition,
            table.c.deleted == 0,
            table.c.key.startswith(prefix, autoescape=True),
        )
    )
    for uuid, key, value in connection.execute(query):
        found.setdefault(uuid, {})[key] = value
    return found
