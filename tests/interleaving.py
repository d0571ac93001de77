"""Writers between the refreshes of one host manager.

After each refresh its table must hold what a full read by somebody who knows nothing holds at that
moment.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

from scheduler.db.database import Database
from scheduler.db.fleet import FleetReader
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable
from tests.builders import a_conf
from tests.writers import Writers

OVERLAP_SECONDS = 60
#: A node whose row was emptied keeps its numbers, and is no candidate.
IDENTITY = ("host", "nodename", "uuid", "node_id", "reported", "updated_at")


def run(
    database: Database,
    seed: int,
    steps: int,
    *,
    counted: bool,
    overlap_seconds: float = OVERLAP_SECONDS,
) -> None:
    """Raise AssertionError at the first refresh after which something is not as it is."""
    writers = Writers(database, seed, counted=counted)
    with contextlib.ExitStack() as stack:
        stack.callback(writers.commit_all)
        writers.fill()
        manager, reader = a_manager(writers, overlap_seconds)
        stack.callback(reader.close)
        for step in range(steps):
            for _ in range(writers.random.choice((1, 1, 2, 3))):
                writers.step()
            manager._heartbeats_at = float("-inf")  # they are left out else, for a second
            manager.refresh()
            expected = a_fresh_look(writers)
            found = contents(manager.table)
            for part, content in expected.items():
                assert found[part] == content, (seed, step, part)


def a_manager(writers: Writers, overlap_seconds: float) -> tuple[HostManager, FleetReader]:
    overlap = datetime.timedelta(seconds=overlap_seconds)
    reader = FleetReader(writers.database, overlap, clock=writers.clock)
    # Full reads would repair what this is looking for.
    conf = a_conf()
    conf.set_override("full_refresh_interval_seconds", 10**9, group="scheduler")
    return HostManager(conf, reader, writers.clock), reader


def a_fresh_look(writers: Writers) -> dict[str, Any]:
    manager, reader = a_manager(writers, OVERLAP_SECONDS)
    manager.refresh()
    reader.close()
    return contents(manager.table)


def contents(table: HostTable) -> dict[str, Any]:
    """What *table* says, whatever the numbers of its rows are."""
    return {
        "order": [
            (table.value(row, "host"), table.value(row, "nodename")) for row in table.order.tolist()
        ],
        "rows": {key: dict(_row(table, row)) for key, row in table.rows.items()},
        "services": {host: dict(record) for host, record in table.services.items()},
        "instances": table.instances,
        "host_of_instance": table.host_of_instance,
    }


def _row(table: HostTable, row: int) -> Iterator[tuple[str, Any]]:
    """What counts of one row: of services that are there, of nodes that ever reported."""
    has_service = table.value(row, "host") in table.services
    reported = table.value(row, "reported")
    for name in (*table._columns, *table._objects):
        if name.startswith("service_"):
            if has_service:
                yield name, table.value(row, name)
        elif name in IDENTITY or reported:
            yield name, table.value(row, name)
    for name in table.pools:
        if reported or name == "aggregates":
            yield name, table.content(row, name)
