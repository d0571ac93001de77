"""Writers between the decisions of one host manager.

After each refresh its table must hold what a full read by somebody who knows nothing holds at that
moment, and requests must be decided as by whoever has just read everything.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from scheduler import errors, objects
from scheduler.db import fleet
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.drivers.filter_scheduler import Settings
from scheduler.engine import decide
from scheduler.hosts import columns
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.table import HostTable
from tests.builders import a_conf, a_request
from tests.world import databases
from tests.world.writers import Writers

OVERLAP_SECONDS = 60
#: A node whose row was emptied keeps the numbers it had, which a newcomer does not know.
IDENTITY = ("host", "nodename", "uuid", "node_id", "reported", "updated_at")
#: Those of Newton, and one that looks at aggregates and services only.
FILTERS = [
    *("AvailabilityZoneFilter", "RamFilter", "DiskFilter", "CoreFilter", "NumInstancesFilter"),
    *("ComputeFilter", "AggregateInstanceExtraSpecsFilter"),
]
#: Rather more than the writers take between two heartbeats of a host.
DOWN_SECONDS = 120
#: Some fit nearly everywhere, some hardly anywhere, some only in an aggregate that says so.
REQUESTS: tuple[dict[str, Any], ...] = (
    {},
    {"memory_mb": 50_000, "vcpus": 16},
    {"root_gb": 600},
    {"extra_specs": {"aggregate_instance_extra_specs:ssd": "<in> v"}},
)


def run(
    database: Database,
    seed: int,
    steps: int,
    *,
    counted: bool,
    overlap_seconds: int = OVERLAP_SECONDS,
) -> None:
    """Raise AssertionError at the first refresh after which something is not as it is."""
    writers = Writers(database, seed, counted=counted)
    with contextlib.ExitStack() as stack:
        stack.callback(writers.commit_all)
        writers.fill()
        manager = stack.enter_context(a_manager(writers, overlap_seconds))
        decider = Decider(manager)
        for step in range(steps):
            for _ in range(writers.random.choice((1, 1, 2, 3))):
                writers.step()
            manager.refresh()
            expected, answers = a_fresh_look(writers)
            found = contents(manager.table)
            for part, content in expected.items():
                assert found[part] == content, (seed, step, part)
            assert decider.answers() == answers, (seed, step)


class Decider:
    """Decides with what *manager* has read; like a driver it keeps what it found out before."""

    def __init__(self, manager: HostManager) -> None:
        self._manager = manager
        conf = a_conf(enabled_filters=FILTERS, DEFAULT__service_down_time=DOWN_SECONDS)
        self._settings = Settings.from_conf(conf, manager)

    def answers(self) -> list[Any]:
        """Per request the hosts, best first, and the limits; None where there are none."""
        table = self._manager.table
        emptied = {
            table.value(row, "host")
            for row in table.order.tolist()
            if not table.value(row, "reported")
        }
        requests = [a_request(flavor=each, ignore_hosts=sorted(emptied)) for each in REQUESTS]
        return [self._answer(spec) for spec in requests]

    def _answer(self, spec: objects.RequestSpec) -> Any:
        manager, settings = self._manager, self._settings
        try:
            placed = decide(
                settings.policy,
                manager.reservations,
                spec,
                alternates=len(manager.table),
                now=manager.clock(),
            )
        except errors.NoValidHost:
            return None
        for pick in reversed(placed.reservations):
            manager.reservations.release(pick)
        hosts = [*placed.hosts, *placed.alternates[0]]
        return [(each.host, each.nodename, each.limits) for each in hosts], placed.limits


@contextlib.contextmanager
def a_manager(writers: Writers, overlap_seconds: int) -> Iterator[HostManager]:
    """Every read of which reads heartbeats, too."""
    conf = a_conf(
        scheduler__refresh_overlap_seconds=overlap_seconds,
        # They would repair what this is looking for.
        scheduler__full_refresh_interval_seconds=10**9,
    )
    with (
        databases.opened(writers.database.url) as database,
        mock.patch.object(fleet, "LATE_SECONDS", 0),
    ):
        yield HostManager(conf, CellsReader(conf, Databases(database)), writers.clock)


def a_fresh_look(writers: Writers) -> tuple[dict[str, Any], list[Any]]:
    """What somebody who knows nothing reads, and how requests are decided on that."""
    with a_manager(writers, OVERLAP_SECONDS) as manager:
        manager.refresh()
        return contents(manager.table), Decider(manager).answers()


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
    for name in (*columns.COLUMN_TYPES, *columns.TEXT_COLUMNS):
        if name.startswith("service_"):
            if has_service:
                yield name, table.value(row, name)
        elif name in IDENTITY or reported:
            yield name, table.value(row, name)
    for name in table.pools:
        if reported or name == "aggregates":
            yield name, table.content(row, name)
