"""Actions on instances and their events (page database, 3.11): tables of Nova alone."""

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import rows
from scheduler.db.database import Database

_BEGIN = """
INSERT INTO instance_actions_events (created_at, deleted, event, action_id, start_time)
SELECT :now, 0, :event, id, :now FROM instance_actions
WHERE request_id = :request_id AND instance_uuid IN :uuids
"""
_END = """
UPDATE instance_actions_events
SET updated_at = :now, finish_time = :now, result = :result, traceback = :traceback
WHERE event = :event AND finish_time IS NULL AND action_id IN (
    SELECT id FROM instance_actions WHERE request_id = :request_id AND instance_uuid IN :uuids)
"""


@contextlib.contextmanager
def recorded(
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

    write(_BEGIN)
    try:
        yield
    except BaseException as error:
        failure = "".join(traceback.format_exception(error))
        write(_END, result="Error", traceback=failure)
        raise
    write(_END, result="Success", traceback=None)
