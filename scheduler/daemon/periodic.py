"""Work that is repeated as long as the service runs, and its heartbeats (page service, 2.2, 4)."""

import datetime
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import objects
from scheduler.concurrency import native
from scheduler.db import fleet_poll, rows, services
from scheduler.db.database import FAILURES, Database

LOG = logging.getLogger(__name__)

DEFAULT_SPACING_SECONDS: Final = 60

SERVICE_VERSION: Final = 74
"""Value of ``services.version`` in Nova's services of the time; newer ones refuse far older."""

FIRST_BEAT_SECONDS: Final = 5
DISABLED_REASON: Final = "New service disabled due to config option."


class RepeatingTask:
    """Calls *run* again and again in a thread of its own: one of *threads*, a threading module.

    A run that fails is logged, and the next one comes all the same; tasks do not wait for each
    other.  A spacing of 0 means 60 seconds, a negative one never.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        spacing_seconds: float,
        jitter: float = 0.0,
        threads: Any = threading,
    ) -> None:
        """*jitter* is the share of the spacing that is added at most, at random, to a pause."""
        self.name = name
        self._run = run
        self._spacing_seconds = spacing_seconds or DEFAULT_SPACING_SECONDS
        self._jitter = jitter
        self._threads = threads
        self._ended = threads.Event()
        self._thread: Any = None

    def start(self, initial_delay_seconds: float = 0) -> None:
        """Begin, the first run after *initial_delay_seconds*."""
        if self._spacing_seconds < 0:
            LOG.info("Skipping periodic task %s because its interval is negative", self.name)
            return
        self._ended.clear()
        self._thread = self._threads.Thread(
            target=self._loop, args=(initial_delay_seconds,), name=self.name, daemon=True
        )
        self._thread.start()

    def respace(self, spacing_seconds: float) -> None:
        """Run at another spacing, counted from now on; not while a run is under way."""
        spacing_seconds = spacing_seconds or DEFAULT_SPACING_SECONDS
        if spacing_seconds == self._spacing_seconds:
            return
        self.stop()
        self._spacing_seconds = spacing_seconds
        self.start(max(0.0, spacing_seconds))

    def stop(self) -> None:
        """End, and wait for a run that is under way; nothing happens if it was never started."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()

    def _loop(self, pause_seconds: float) -> None:
        while not self._ended.wait(pause_seconds):
            pause_seconds = self.run_once()

    def run_once(self) -> float:
        """Run now; returns the seconds until the next run is due."""
        began = time.monotonic()
        LOG.debug("Running periodic task %s", self.name)
        try:
            self._run()
        except Exception:
            LOG.exception("Error during %s", self.name)
        extra = int(self._spacing_seconds * random.uniform(0, self._jitter))
        return max(0.0, began + self._spacing_seconds + extra - time.monotonic())


class ServiceHeartbeat:
    """Registers the service *binary* of this host and then shows that it lives.

    No failure ends the heartbeats: they go on when the database is back.  Where nothing may be
    written there is neither a row nor a heartbeat.

    Heartbeats are written by a native thread, so that a decision that computes for long does not
    delay them.  Its *database* is therefore one that nobody else uses.
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database, binary: str, topic: str) -> None:
        self._database = database
        self._host = conf.host
        self._binary = binary
        self._topic = topic
        self._is_enabled_when_new = conf.enable_new_services
        self._interval_seconds = conf.report_interval
        self._service_id = 0
        self._is_failing = False
        self._task = RepeatingTask(
            f"heartbeat of {binary}", self.beat, self._interval_seconds, threads=native("threading")
        )

    def register(self) -> None:
        """Find or create the row; workers of one daemon share it."""
        if self._database.is_read_only:
            return
        self._service_id = self._database.write_retrying(self._get_or_create).id

    def start(self) -> None:
        """Begin, with the first heartbeat after 5 seconds; a ``report_interval`` of 0 is none."""
        if self._interval_seconds > 0 and not self._database.is_read_only:
            self._task.start(FIRST_BEAT_SECONDS)

    def stop(self) -> None:
        """End; may be called without a start."""
        self._task.stop()

    def beat(self) -> None:
        """Write one heartbeat, or log why that is not possible."""
        now = rows.utcnow()
        try:
            is_new = self._database.write_retrying(lambda conn: self._write(conn, now))
        except Exception as error:
            self._is_failing, fault = True, None if isinstance(error, FAILURES) else error
            cause = self._database.unusable(error)
            LOG.error("Unexpected error while reporting service status: %s", cause, exc_info=fault)
            return
        if is_new:
            LOG.warning(
                "The services table record for the %s service on host %s is gone, and was made "
                "again. To be rid of the record, stop the service before you delete it.",
                self._binary,
                self._host,
            )
        if self._is_failing:
            self._is_failing = False
            LOG.info("Recovered from being unable to report status.")

    def _write(self, connection: Connection, now: datetime.datetime) -> bool:
        """Write a heartbeat; True where its row, which somebody had deleted, is made again."""
        fleet_poll.remove_old(connection)
        if services.heartbeat(connection, [self._service_id], now):
            return False
        record = self._get_or_create(connection)
        self._service_id = record.id
        services.heartbeat(connection, [record.id], now)
        return record.last_seen_up is None  # else another worker made it

    def _get_or_create(self, connection: Connection) -> objects.Service:
        found = services.find(connection, self._host, self._binary)
        if found is not None and found.version != SERVICE_VERSION:
            text = "Updating service version for %s on %s from %s to %s"
            LOG.info(text, self._binary, self._host, found.version, SERVICE_VERSION)
        return services.get_or_create(
            connection,
            self._host,
            self._binary,
            self._topic,
            SERVICE_VERSION,
            disabled=not self._is_enabled_when_new,
            reason=None if self._is_enabled_when_new else DISABLED_REASON,
        )
