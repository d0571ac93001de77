"""Claims of answers that are lost, because the database went back, are written again.

Everything that knows them does so before anybody claims anew (docs/decisions/0007).
"""

import datetime
import functools
import uuid
from collections.abc import Iterable, Mapping
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
    answered: Mapping[str, claim_rows.Values],
    now: float,
    hold_seconds: float,
) -> set[Pair]:
    """Have all schedulers claim nothing until *now* + *hold_seconds*, and write what is missing.

    No decision holds that was made before: the generations of all hosts go.
    *answered* are the values of claims by consumer, as they were written.  Returns the open claims
    of these consumers.  Raises oslo.db's errors, and ClaimConflict if others are always faster.
    """
    mark = claim_rows.refusal(str(uuid.uuid4()), MARK, "", utc(now))
    until = utc(now + hold_seconds) + datetime.timedelta(seconds=1)
    mark |= {"closed_at": None, "expires_at": until}
    database.write_retrying(lambda connection: claim_rows.insert(connection, [mark]))
    # After the mark: whoever begins a host meanwhile reads the claims later, and so the mark.
    database.write_retrying(claim_rows.forget_hosts)
    several = [(name, each) for name, each in answered.items() if each["expires_at"] > utc(now)]
    there: set[Pair] = set()
    for start in range(0, len(several), TOGETHER):
        there |= _written(database, dict(several[start : start + TOGETHER]), utc(now))
    return there


def _written(
    database: Database, answered: Mapping[str, claim_rows.Values], now: datetime.datetime
) -> set[Pair]:
    """The open claims of the consumers of *answered*, once none of these claims is missing."""
    for _try in range(TRIES_AT_MOST):
        with database.read() as connection:
            found = claim_rows.of_consumers(connection, answered)
        missing = {name: each for name, each in answered.items() if _is_missing(each, found)}
        if not missing:
            return {(row.id, row.generation) for row in found if row.closed_at is None}
        keys = {name: (each["host"], each["node"]) for name, each in missing.items()}
        hosts = claim_rows.begin(database, {*keys.values()})
        moves = {key: Move.from_row(row) for key, row in hosts.items()}
        values = [{**missing[name], **moves[key].made} for name, key in keys.items()]
        aside = [row.id for row in found if any(_is_same(each, row) for each in missing.values())]
        write = functools.partial(
            claim_rows.claim,
            moves=moves.values(),
            values=values,
            now=now,
            replaced=[row.id for row in found],
            aside=aside,
        )
        try:
            database.write_retrying(write)
        except (claim_rows.Moved, db_exception.DBDuplicateEntry):
            LOG.debug("Others have just claimed on the same hosts, or answered the same requests")
    raise errors.ClaimConflict(attempts=TRIES_AT_MOST)


def _is_missing(claim: claim_rows.Values, rows: Iterable[Any]) -> bool:
    """True unless the *claim* is among *rows*, or one of a later request for its consumer."""
    own = [row for row in rows if row.consumer_uuid == claim["consumer_uuid"] and row.host]
    return not any(
        row.closed_at is None if _is_same(claim, row) else row.created_at >= claim["created_at"]
        for row in own
    )


def _is_same(claim: claim_rows.Values, row: Any) -> bool:
    names = ("consumer_uuid", "request_id")
    return all(getattr(row, name) == claim[name] for name in names)
