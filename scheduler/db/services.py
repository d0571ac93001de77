"""The services: one row per process name and host (reference page database, sections 3.2 and 8)."""

import datetime
from collections.abc import Sequence
from typing import Any

from oslo_db import exception as db_exception
from sqlalchemy import ColumnElement, Connection

from scheduler import errors, objects
from scheduler.db import rows
from scheduler.db.tables import services

COMPUTE_BINARY = "nova-compute"
#: Values of a new row: Nova cannot read NULL there.
DEFAULTS = {"report_count": 0, "disabled": False, "forced_down": False}


def find(connection: Connection, host: str, binary: str) -> objects.Service | None:
    found = rows.read(connection, services, *_is(host, binary))
    return rows.to_object(objects.Service, found[0]) if found else None


def get(connection: Connection, host: str, binary: str) -> objects.Service:
    """The living service *binary* of *host*; raises ServiceNotFound."""
    found = find(connection, host, binary)
    if found is None:
        raise errors.ServiceNotFound(service_id=f"{binary} on {host}")
    return found


def list_all(connection: Connection, binary: str | None = None) -> list[objects.Service]:
    """Every living service in the order of the ids, or those of one *binary*."""
    criteria = [] if binary is None else [services.c.binary == binary]
    found = rows.read(connection, services, *criteria)
    return [rows.to_object(objects.Service, row) for row in found]


def get_or_create(
    connection: Connection,
    host: str,
    binary: str,
    topic: str,
    version: int,
    disabled: bool = False,
    reason: str | None = None,
) -> objects.Service:
    """The service's row, inserted if it is missing; *version* is brought up to date.

    *disabled* and *reason* are for a new row only.  A sibling that inserts it at the same moment
    is no error: its row is the one.
    """
    found = find(connection, host, binary)
    if found is None:
        key = {"host": host, "binary": binary, "topic": topic}
        new = {**DEFAULTS, **key, "disabled": disabled, "disabled_reason": reason}
        try:
            with connection.begin_nested():
                rows.insert(connection, services, **new, version=version)
        except db_exception.DBDuplicateEntry as error:
            if find(connection, host, binary) is None:
                raise errors.AlreadyExists(kind="service of topic", name=topic) from error
        found = get(connection, host, binary)
    if found.version != version:
        rows.update(connection, services, services.c.id == found.id, version=version)
        found = get(connection, host, binary)
    return found


def heartbeat(connection: Connection, service_ids: Sequence[int], now: datetime.datetime) -> int:
    """Note that the services live, at *now* (naive UTC); return how many still have their row."""
    table = services
    new = {"report_count": table.c.report_count + 1, "last_seen_up": now, "updated_at": now}
    return sum(
        rows.update(connection, table, table.c.id.in_(some), table.c.deleted == 0, **new)
        for some in rows.in_batches(service_ids)
    )


def is_up(service: objects.Service, down_time_seconds: float) -> bool:
    """True by the last heartbeat, else by the creation (reference page scheduling, section 10)."""
    seen = service.last_seen_up or service.created_at
    if service.forced_down or seen is None:
        return False
    silence = abs(rows.utcnow() - seen.replace(tzinfo=None))
    return silence <= datetime.timedelta(seconds=down_time_seconds)


def change(connection: Connection, host: str, binary: str, **values: Any) -> None:
    """Set columns of the living service; raises ServiceNotFound."""
    if not rows.update(connection, services, *_is(host, binary), **values):
        raise errors.ServiceNotFound(service_id=f"{binary} on {host}")


def _is(host: str, binary: str) -> tuple[ColumnElement[bool], ...]:
    return (services.c.host == host, services.c.binary == binary, services.c.deleted == 0)
