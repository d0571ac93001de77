"""The fleet as the database has it, read as a worker reads it, to compare workers with."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from scheduler import errors
from scheduler.db.cells import CellsReader
from scheduler.db.databases import Databases
from scheduler.drivers.loading import load_host_manager
from scheduler.hosts.table import Key
from scheduler.introspection.host_dump import Portrait, differences, portrait, presence


class DatabaseState:
    """Read anew whenever asked; threads may share it."""

    def __init__(self, conf: cfg.ConfigOpts, databases: Databases) -> None:
        self._manager = load_host_manager(conf, CellsReader.from_conf(conf, databases))
        self._reading = threading.Lock()

    def portraits(self, hosts: Iterable[str] | None = None) -> dict[Key, Portrait]:
        """Of all hosts, or of some, as of now; StateUnavailable if a part cannot be read."""
        with self._reading:
            self._manager.refresh_everything()
            left_out = [
                each.name or each.uuid for each in self._manager.cell_health() if each.is_left_out
            ]
            if left_out:
                raise errors.StateUnavailable(reason=f"no answer from cell {', '.join(left_out)}")
            table, reservations = self._manager.table, self._manager.reservations
            wanted = None if hosts is None else set(hosts)
            return {
                key: portrait(table, reservations, key)
                for key in table.rows
                if wanted is None or key[0] in wanted
            }


class Comparison:
    """What one worker says differently than the database, also when both are asked again."""

    def __init__(self, database: DatabaseState) -> None:
        self._database = database
        self.differences: list[dict[str, Any]] = []

    @property
    def hosts(self) -> list[str] | None:
        """Which hosts to look at: all at first, then those that seemed different."""
        if not self.differences:
            return None
        return sorted({each["host"] for each in self.differences})

    def look(self, of_worker: Sequence[Portrait], *, is_first: bool) -> bool:
        """Compare the portraits *of_worker*; whether what differs is worth another look.

        What a later look does not find just the same was on its way.
        """
        known = {(each["host"], each["node"]): each for each in of_worker}
        stored = self._database.portraits(self.hosts)
        found: list[dict[str, Any]] = []
        for key in sorted(known.keys() | stored.keys(), key=lambda key: (key[0], key[1] or "")):
            if key in known and key in stored:
                found += differences(known[key], stored[key])
            else:
                found.append(presence(key, key in known, key in stored))
        self.differences = (
            found if is_first else [each for each in found if each in self.differences]
        )
        return any(not each["explained"] for each in self.differences)
