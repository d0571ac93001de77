"""Records of decisions in the database, written by a thread of its own."""

import datetime
import time
from typing import Final, Self

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.db import decisions, migration, rows
from scheduler.db.database import Database
from scheduler.engine.record import DecisionRecord
from scheduler.explain.answer import to_dict
from scheduler.threads import BatchThread

LOG = logging.getLogger(__name__)

OPTION: Final = "[explain] database"
MOST_WAITING: Final = 1000
"""So many records wait for the database; what comes on top is left out."""
PURGE_SECONDS: Final = 600.0
LEAST_PURGED: Final = 100
PURGE_SHARE: Final = 10
"""Old records are deleted at the latest when one part in so many of those kept has come on top."""
CLOSE_SECONDS: Final = 5.0


def check_ready(conf: cfg.ConfigOpts, database: Database) -> None:
    """Raise ConfigurationError if records are to be written to what is not ours to write to."""
    if not conf.explain.database:
        return
    if database.is_read_only:
        reason = f"nothing is written to {database.masked_url}: [database] read_only is set"
        raise errors.ConfigurationError(option=OPTION, reason=reason)
    with database.naming_itself():
        found = migration.version(database)
    if found is None:
        reason = f"{database.masked_url} has no tables for records: it is Nova's, or was not made "
        raise errors.ConfigurationError(
            option=OPTION, reason=f"{reason}by {migration.SYNC_COMMAND}"
        )


class Store:
    """Writes records to *database*, and deletes those that are too old or too many.

    Nobody waits for it: while the database is away, records are left out, with a warning.
    """

    def __init__(self, database: Database, daemon: str, kept_days: int, kept_records: int) -> None:
        self._database = database
        self._daemon = daemon
        self._kept = datetime.timedelta(days=kept_days)
        self._kept_records = kept_records
        self._thread = BatchThread("decisions", self._write, MOST_WAITING)
        self._purge_due_at = 0.0
        self._written = 0
        self._is_failing = False

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, database: Database) -> Self | None:
        """The store that ``[explain]`` wants; None if nothing is to be written."""
        options = conf.explain
        if not options.database:
            return None
        return cls(database, conf.host, options.database_kept_days, options.database_kept_records)

    def put(self, record: DecisionRecord) -> None:
        """Have *record* written soon; never waits, never raises."""
        if not self._thread.put(record):
            self._warn("the database is too slow")

    def close(self) -> None:
        """Write what waits, for a while; the rest is left out."""
        left = self._thread.close(CLOSE_SECONDS)
        if left:
            LOG.warning("%d records of decisions were not written", left)

    def _write(self, batch: list[DecisionRecord]) -> None:
        try:
            documents = [to_dict(record) for record in batch]
            with self._database.write() as connection:
                for each in documents:
                    decisions.add(connection, each, self._daemon, rows.utcnow())
            self._is_failing = False
            self._written += len(batch)
            self._purge()
        except Exception as error:
            LOG.debug("Records could not be written", exc_info=True)
            self._warn(str(error))

    def _purge(self) -> None:
        """Delete what is too old or too much, now and then."""
        is_due = time.monotonic() >= self._purge_due_at
        if not is_due and self._written < max(LEAST_PURGED, self._kept_records // PURGE_SHARE):
            return
        self._purge_due_at, self._written = time.monotonic() + PURGE_SECONDS, 0
        with self._database.write() as connection:
            decisions.purge(connection, rows.utcnow() - self._kept, self._kept_records)

    def _warn(self, why: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            LOG.warning("Records of decisions are not written: %s", why)
