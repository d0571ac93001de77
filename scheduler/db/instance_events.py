"""Actions on instances and the events in them, where Nova keeps some (page database, 3.11).

The tables are Nova's alone: in databases of this project nobody begins an action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, DateTime, Integer, MetaData, String, Table, Text

from scheduler.db import rows

SUCCESS = "Success"
ERROR = "Error"

metadata = MetaData()


def _dates() -> list[Column[Any]]:
    return [
        *(Column(name, DateTime) for name in ("created_at", "updated_at", "deleted_at")),
        Column("deleted", Integer),
    ]


actions = Table(
    "instance_actions",
    metadata,
    *_dates(),
    Column("id", Integer, primary_key=True),
    Column("action", String(255)),
    Column("instance_uuid", String(36)),
    Column("request_id", String(255)),
    Column("start_time", DateTime),
)
events = Table(
    "instance_actions_events",
    metadata,
    *_dates(),
    Column("id", Integer, primary_key=True),
    Column("event", String(255)),
    Column("action_id", Integer),
    Column("start_time", DateTime),
    Column("finish_time", DateTime),
    Column("result", String(255)),
    Column("traceback", Text),
)


def start(
    connection: Connection, request_id: str | None, uuids: Sequence[str], event: str
) -> list[int]:
    """Begin *event* in the action that *request_id* is on each of the instances; the events' ids.

    An instance without such an action is passed over.
    """
    if not sa.inspect(connection).has_table(actions.name):
        return []
    begun: list[int] = []
    for some in rows.in_batches(uuids):
        query = (
            sa.select(actions.c.id)
            .where(actions.c.request_id == request_id, actions.c.instance_uuid.in_(some))
            .order_by(actions.c.id)
        )
        for action_id in connection.execute(query).scalars().all():
            now = rows.utcnow()
            values = {"event": event, "action_id": action_id, "start_time": now}
            statement = events.insert().values(created_at=now, deleted=0, **values)
            key: Any = connection.execute(statement).inserted_primary_key
            begun.append(int(key[0]))
    return begun


def finish(connection: Connection, event_ids: Sequence[int], failure: str | None) -> None:
    """End the events: with Error and the text *failure*, or with Success if it is None."""
    now = rows.utcnow()
    result = SUCCESS if failure is None else ERROR
    for some in rows.in_batches(event_ids):
        statement = events.update().where(events.c.id.in_(some))
        values = {"finish_time": now, "updated_at": now, "result": result, "traceback": failure}
        connection.execute(statement.values(**values))
