"""Rows that are shown and never decided on: flavors, schedulers, counts of recorded decisions.

Read in the background when somebody looks, so that nobody waits for a database.
"""

import datetime
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from oslo_log import log as logging

from scheduler.conf.effective import masked
from scheduler.db import decisions, flavors, rows, services
from scheduler.db.databases import Databases

LOG = logging.getLogger(__name__)

FRESH_SECONDS: Final = 15.0
WINDOWS: Final = {"hour": datetime.timedelta(hours=1), "day": datetime.timedelta(days=1)}
NOTHING: Final[Mapping[str, Any]] = MappingProxyType(
    {"flavors": (), "schedulers": (), "recorded": None, "error": None}
)


class Overview:
    """The latest rows of *databases*: services are those of *binary*, records this daemon's."""

    def __init__(self, databases: Databases, conf: Any, binary: str) -> None:
        self.databases = databases
        self._daemon = conf.host
        self._binary = binary
        self._has_records = conf.explain.database
        self._down_seconds = conf.service_down_time
        self._lock = threading.Lock()
        self._due_at = float("-inf")
        self._latest: Mapping[str, Any] = NOTHING

    def latest(self) -> Mapping[str, Any]:
        """As last read: ``flavors``, ``schedulers``, ``recorded`` by window, and an ``error``.

        ``recorded`` is None without records.  What is old is read anew for the next caller.
        """
        with self._lock:
            is_due = time.monotonic() >= self._due_at
            if is_due:
                self._due_at = float("inf")
        if is_due:
            threading.Thread(target=self.read, name="overview", daemon=True).start()
        return self._latest

    def read(self) -> None:
        """Read everything; an error leaves the rest as it was."""
        try:
            self._latest = self._read()
        except Exception as error:
            LOG.debug("What is only shown could not be read", exc_info=True)
            self._latest = {**self._latest, "error": masked(str(error).partition("\n")[0])}
        finally:
            self._due_at = time.monotonic() + FRESH_SECONDS

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = {**NOTHING}
        api = self.databases.api
        if not api.layout.is_nova or api.layout.has("flavors"):
            with api.read() as connection:
                every = flavors.list_all(connection)
            found["flavors"] = [each for each in every if not each.disabled]
        with self.databases.main.read() as connection:
            known = services.list_all(connection, self._binary)
            found["schedulers"] = [_scheduler(each, self._down_seconds) for each in known]
            if self._has_records:
                now = rows.utcnow()
                found["recorded"] = {
                    name: decisions.counts(connection, self._daemon, now - length)
                    for name, length in WINDOWS.items()
                }
        return found

    def decision(self, name: str) -> dict[str, Any] | None:
        """The latest record of a request id or an instance's uuid; None if there is none."""
        if not self._has_records:
            return None
        with self.databases.main.read() as connection:
            return next(iter(decisions.find(connection, name)), None)


def _scheduler(service: Any, down_seconds: float) -> dict[str, Any]:
    seen = service.last_seen_up
    return {
        "host": service.host,
        "is_up": services.is_up(service, down_seconds),
        "is_disabled": bool(service.disabled),
        "last_seen": None if seen is None else seen.timestamp(),
    }
