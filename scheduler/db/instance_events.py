"""Actions on instances and their events (page database, 3.11): tables of Nova alone."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, DateTime, Integer, MetaData, Table, Text

from scheduler.db import rows
from scheduler.db.tables import STRING, columns

SUCCESS = "Success"
ERROR = "Error"

metadata = MetaData()


def _table(name: str, *items: sa.Column[Any]) -> Table:
    key = sa.Column("id", Integer, primary_key=True)
    dates = columns(DateTime, "created_at updated_at deleted_at start_time")
    return Table(name, metadata, key, *dates, *columns(Integer, "deleted"), *items)


actions = _table("instance_actions", *columns(STRING, "action request_id instance_uuid"))
events = _table(
    "instance_actions_events",
    *columns(STRING, "event result"),
    *columns(Integer, "action_id"),
    *columns(DateTime, "finish_time"),
    *columns(Text, "traceback"),
)


def start(
    connection: Connection, request_id: str | None, uuids: Sequence[str], event: str
) -> list[int]:
    """Begin *event* in the action of *request_id* on each instance that has it; the ids."""
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
            values = {"event": event, "action_id": action_id, "start_time": rows.utcnow()}
            begun.append(rows.insert(connection, events, **values))
    return begun


def finish(connection: Connection, event_ids: Sequence[int], failure: str | None) -> None:
    """End the events: with Error and the text *failure*, or with Success if it is None."""
    values = {
        "finish_time": rows.utcnow(),
        "result": SUCCESS if failure is None else ERROR,
        "traceback": failure,
    }
    for some in rows.in_batches(event_ids):
        rows.update(connection, events, events.c.id.in_(some), **values)
