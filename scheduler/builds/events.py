"""Events in the actions that a server's user sees (reference page conductor, section 9)."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence

from scheduler.db import instance_events
from scheduler.db.database import Database

SCHEDULE = "schedule"


@contextlib.contextmanager
def recorded(database: Database, request_id: str | None, uuids: Sequence[str]) -> Iterator[None]:
    """Within it the action of *request_id* on each of the servers has an event ``schedule``.

    Servers without such an action get none.  The event ends with Success, or with Error and the
    traceback of what leaves the block.
    """
    events = database.write_retrying(
        lambda conn: instance_events.start(conn, request_id, uuids, SCHEDULE)
    )
    failure: str | None = None
    try:
        yield
    except BaseException as error:
        failure = "".join(traceback.format_exception(error))
        raise
    finally:
        if events:
            database.write_retrying(lambda conn: instance_events.finish(conn, events, failure))
