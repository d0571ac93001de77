"""Claims of answers that are lost, because the database went back, are written again.

Everything that knows them does so before anybody claims anew (docs/decisions/0007).
"""

import datetime
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from oslo_db import exception as db_exception
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.reader import utc
from scheduler.db import claims as claim_rows
from scheduler.db.claims import Move, Pair
from scheduler.db.database import Database

LOG = logging.getLogger(__name__)

GONE_BACK: Final = (
    "The claims in the database are not those that were read before: it was restored, has failed "
    "over to an older copy, or rows were deleted. %d answered claims are written again where they "
    "are missing, and no scheduler claims for %g s; run: nova-scheduler-manage claims audit"
)
MARK: Final = "history lost"
#: Most tries for so many claims; others write theirs at the same time.
TRIES_AT_MOST, TOGETHER = 50, 50


def write_again(
    database: Database,
    answered: Sequence[Mapping[str, Any]],
    now: float,
    hold_seconds: float,
) -> set[Pair]:
    """Have all schedulers claim nothing until *now* + *hold_seconds*, and write what is missing.

    No decision holds that was made before: the generations of all hosts go.
    *answered* are the values of claims as they were written.  Returns the mark and the open claims
    of their consumers.  Raises oslo.db's errors, and ClaimConflict if others are always faster.
    """
    mark = claim_rows.refusal(str(uuid.uuid4()), MARK, "", utc(now))
    until = utc(now + hold_seconds) + datetime.timedelta(seconds=1)
    mark |= {"closed_at": None, "expires_at": until}
    database.write_retrying(lambda connection: claim_rows.insert(connection, [mark]))
    # After the mark: whoever begins a host meanwhile reads the claims later, and so the mark.
    database.write_retrying(claim_rows.forget_hosts)
    several = [each for each in answered if each["expires_at"] > utc(now)]
    with database.read() as connection:
        there = [*claim_rows.of_consumers(connection, [mark["consumer_uuid"]]).values()]
    for start in range(0, len(several), TOGETHER):
        some = several[start : start + TOGETHER]
        for _try in range(TRIES_AT_MOST):
            if (found := _written(database, some, utc(now))) is not None:
                there += found
                break
        else:
            raise errors.ClaimConflict(attempts=TRIES_AT_MOST)
    return {(row.id, row.generation) for row in there if row.closed_at is None}


def _written(
    database: Database, several: Sequence[Mapping[str, Any]], now: datetime.datetime
) -> list[Any] | None:
    """The claims of the consumers of *several*; None if some were missing before this try."""
    with database.read() as connection:
        found = claim_rows.of_consumers(connection, [each["consumer_uuid"] for each in several])
    missing = [each for each in several if _is_missing(each, found.get(each["consumer_uuid"]))]
    if not missing:
        return list(found.values())
    hosts = claim_rows.begin(database, {(each["host"], each["node"]) for each in missing})
    moves = {key: Move.from_row(row) for key, row in hosts.items()}
    values = []
    for each in missing:
        move = moves[each["host"], each["node"]]
        values.append({**each, "generation": move.generation, "previous": move.expected})
    replaced = [found[each["consumer_uuid"]] for each in missing if each["consumer_uuid"] in found]
    try:
        database.write_retrying(
            lambda conn: claim_rows.claim(conn, moves.values(), values, now, replaced)
        )
    except (claim_rows.Moved, db_exception.DBDuplicateEntry):
        LOG.debug("Others have just claimed on the same hosts, or for the same instances")
    return None


def _is_missing(claim: Mapping[str, Any], row: Any) -> bool:
    """True unless *row*, what its consumer has, is the *claim*, or is of a later request."""
    if row is None:
        return True
    if row.request_id == claim["request_id"]:
        return bool(row.closed_at is not None)
    return bool(row.created_at < claim["created_at"])
