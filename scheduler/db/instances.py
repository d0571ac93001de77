"""Instances, their parts, faults and events (page database, 3.3 to 3.6, 3.11, 5.7 to 5.9)."""

import contextlib
import json
import traceback
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.database import Database
from scheduler.db.tables import (
    instance_extra,
    instance_faults,
    instance_metadata,
    instance_system_metadata,
    instances,
)

#: The bytes of UTF-8 that the column's 255 characters are sure to hold.
MESSAGE_BYTES = 255

# Actions and their events are in tables of Nova alone.
_BEGIN_EVENTS = """
INSERT INTO instance_actions_events (created_at, deleted, event, action_id, start_time)
SELECT :now, 0, :event, id, :now FROM instance_actions
WHERE request_id = :request_id AND instance_uuid IN :uuids
"""
_END_EVENTS = """
UPDATE instance_actions_events
SET updated_at = :now, finish_time = :now, result = :result, traceback = :traceback
WHERE event = :event AND finish_time IS NULL AND action_id IN (
    SELECT id FROM instance_actions WHERE request_id = :request_id AND instance_uuid IN :uuids)
"""


def get(connection: Connection, uuid: str) -> objects.Instance:
    """The living instance with all its parts; raises InstanceNotFound."""
    found = list_all(connection, uuids=[uuid])
    if not found:
        raise errors.InstanceNotFound(instance_id=uuid)
    return found[0]


def list_all(
    connection: Connection,
    *,
    host: str | None = None,
    uuids: Sequence[str] | None = None,
    parts: bool = True,
) -> list[objects.Instance]:
    """Living instances that meet every filter, by id; without *parts* these stay unset."""
    criteria = [] if host is None else [instances.c.host == host]
    if uuids is None:
        found = list(rows.read(connection, instances, *criteria))
    else:
        found = []
        for some in rows.in_batches(uuids):
            found += rows.read(connection, instances, instances.c.uuid.in_(some), *criteria)
    made = [rows.to_object(objects.Instance, row) for row in found]
    if parts:
        _read_parts(connection, made)
    return sorted(made, key=lambda instance: instance.id)


def rows_by_uuid(connection: Connection, uuids: Collection[str]) -> dict[str, Any]:
    """The instances with these uuids, deleted ones included."""
    found = rows.select_in(connection, sa.select(instances), instances.c.uuid, sorted(uuids))
    return {row.uuid: row for row in found}


def counts_by_node(connection: Connection) -> dict[tuple[str, str], int]:
    table = instances
    query = (
        sa.select(table.c.host, table.c.node, sa.func.count())
        .where(table.c.deleted == 0, table.c.host.is_not(None))
        .group_by(table.c.host, table.c.node)
    )
    return {(host, node or ""): count for host, node, count in connection.execute(query)}


def update(connection: Connection, uuid: str, **values: Any) -> None:
    """Set columns of the living instance; raises InstanceNotFound."""
    if not rows.update(
        connection, instances, instances.c.uuid == uuid, instances.c.deleted == 0, **values
    ):
        raise errors.InstanceNotFound(instance_id=uuid)


def set_system_metadata(
    connection: Connection, instance_uuid: str, key: str, value: str | None
) -> None:
    table = instance_system_metadata
    criteria = (table.c.instance_uuid == instance_uuid, table.c.key == key, table.c.deleted == 0)
    if not rows.update(connection, table, *criteria, value=value):
        rows.insert(connection, table, instance_uuid=instance_uuid, key=key, value=value)


def homes_by_system_metadata(connection: Connection, key: str, value: str) -> dict[str, str | None]:
    """The host of each living instance whose system metadata has *value* under *key*."""
    texts = instance_system_metadata
    query = (
        sa.select(instances.c.uuid, instances.c.host)
        .join(texts, texts.c.instance_uuid == instances.c.uuid)
        .where(texts.c.key == key, texts.c.value == value, texts.c.deleted == 0)
        .where(instances.c.deleted == 0)
    )
    return {uuid: host for uuid, host in connection.execute(query.order_by(instances.c.id))}


def add_fault(
    connection: Connection,
    instance_uuid: str,
    code: int,
    message: str,
    details: str = "",
    host: str | None = None,
) -> None:
    """Write a fault; *message* is cut to 255 bytes of UTF-8 (reference page conductor, 6)."""
    rows.insert(
        connection,
        instance_faults,
        instance_uuid=instance_uuid,
        code=code,
        message=message.encode("utf-8")[:MESSAGE_BYTES].decode("utf-8", "ignore"),
        details=details,
        host=host,
    )


@contextlib.contextmanager
def recorded_event(
    database: Database, request_id: str | None, uuids: Sequence[str], event: str
) -> Iterator[None]:
    """Within it the action of *request_id* on each of the instances has an *event*.

    Instances without such an action get none.  The event ends with Success, or with Error and the
    traceback of what leaves the block (reference page conductor, section 9).
    """

    def write(sql: str, **values: Any) -> None:
        now = sa.bindparam("now", rows.utcnow(), sa.DateTime)
        statement = sa.text(sql).bindparams(now, sa.bindparam("uuids", expanding=True))
        given = {"event": event, "request_id": request_id, "uuids": list(uuids), **values}

        def execute(connection: sa.Connection) -> None:
            if sa.inspect(connection).has_table("instance_actions"):
                connection.execute(statement, given)

        database.write_retrying(execute)

    write(_BEGIN_EVENTS)
    try:
        yield
    except BaseException as error:
        failure = "".join(traceback.format_exception(error))
        write(_END_EVENTS, result="Error", traceback=failure)
        raise
    write(_END_EVENTS, result="Success", traceback=None)


def _read_parts(connection: Connection, several: Sequence[objects.Instance]) -> None:
    uuids = [each.uuid for each in several]
    tables = (instance_extra, instance_metadata, instance_system_metadata)
    extra, metadata, system_metadata = rows.children(connection, "instance_uuid", uuids, *tables)
    for each in several:
        each.metadata = {row.key: row.value for row in metadata[each.uuid]}
        each.system_metadata = {row.key: row.value for row in system_metadata[each.uuid]}
        for row in extra[each.uuid]:
            flavors = json.loads(row.flavor) if row.flavor else {}
            if flavors:
                each.flavor = flavors["cur"]
                each.old_flavor, each.new_flavor = flavors.get("old"), flavors.get("new")
            each.numa_topology = json.loads(row.numa_topology) if row.numa_topology else None
            each.pci_requests = None
            if row.pci_requests:
                plain = {"instance_uuid": each.uuid, "requests": json.loads(row.pci_requests)}
                each.pci_requests = objects.InstancePCIRequests.from_dict(plain)
