"""Rows in memory, which the host manager reads like those of a database."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from oslo_utils import timeutils

from scheduler import objects
from scheduler.db import tables
from scheduler.db.cells import CellHealth
from scheduler.db.fleet import FleetChanges
from scheduler.db.services import COMPUTE_BINARY

#: Time at which rows were created that do not say it.
CREATED_AT = datetime.datetime(2026, 1, 1)
#: The flavor of instances that do not say it.
FLAVOR_ID = 1
_TIMES = ("created_at", "updated_at", "deleted_at", "last_seen_up")


def moment(text: str) -> datetime.datetime:
    """A time in a text as naive UTC."""
    return timeutils.normalize_time(datetime.datetime.fromisoformat(text))


class RowFleet:
    """A reader of the rows of *fleet*, by table; every read is a full one."""

    def __init__(self, fleet: Mapping[str, Any]) -> None:
        self._nodes = [_row(tables.compute_nodes, each) for each in fleet.get("compute_nodes", ())]
        self._instances = [
            _row(tables.instances, {"instance_type_id": FLAVOR_ID, **each})
            for each in fleet.get("instances", ())
        ]
        self._cell_of_host: dict[str, objects.CellMapping] = {}
        for each in fleet.get("cells") or ():
            cell = objects.CellMapping(uuid=each["uuid"], id=0)
            self._cell_of_host |= dict.fromkeys(each["hosts"], cell)
        self._replace({"services": (), "aggregates": (), **fleet})

    def change(self, step: Mapping[str, Any]) -> None:
        """Apply the changes of one step: new, replaced and deleted rows, whole new tables."""
        for each in step.get("compute_nodes", ()):
            row = _row(tables.compute_nodes, each)
            self._delete(row.host, row.hypervisor_hostname)
            self._nodes.append(row)
        for host, node in step.get("delete_nodes", ()):
            self._delete(host, node)
        self._replace(step)

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        del now, full
        cells = [None, *dict.fromkeys(self._cell_of_host.values())]
        return [self._read(cell) for cell in cells]

    def _read(self, cell: objects.CellMapping | None) -> FleetChanges:
        services = [row for row in self._in(cell, self._services) if row.binary == COMPUTE_BINARY]
        instances = self._in(cell, self._instances)
        return FleetChanges(
            full=True,
            nodes=sorted(self._in(cell, self._nodes), key=lambda each: each.id),
            instances=instances,
            services=services,
            aggregates=self._aggregates if cell is None else None,
            cell=cell,
            system_metadata={
                row.uuid: getattr(row, "system_metadata", None) or {} for row in instances
            },
        )

    def _in(self, cell: objects.CellMapping | None, rows: Iterable[Any]) -> list[Any]:
        return [row for row in rows if self._cell_of_host.get(row.host) is cell]

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """Nothing: all is read by every read."""
        del now
        return ()

    def cell_health(self) -> Sequence[CellHealth]:
        """Nothing: rows in memory always answer."""
        return ()

    def read_more(self, conf: Any) -> None:
        """Nothing: everything is read anyway."""

    def _replace(self, whole: Mapping[str, Any]) -> None:
        if "services" in whole:
            self._services = [_row(tables.services, each) for each in whole["services"]]
        if "aggregates" in whole:
            self._aggregates = [objects.Aggregate(**each) for each in whole["aggregates"]]

    def _delete(self, host: str, node: str) -> None:
        key = (host, node)
        self._nodes = [row for row in self._nodes if (row.host, row.hypervisor_hostname) != key]


def _row(table: Any, values: Mapping[str, Any]) -> Any:
    """A row as a query gives it: columns as attributes, times (or their texts) as naive UTC."""
    columns = {**dict.fromkeys(table.c.keys()), "deleted": 0, **values}
    for name in _TIMES:
        if isinstance(text := columns.get(name), str):
            columns[name] = moment(text)
    columns["created_at"] = columns.get("created_at") or CREATED_AT
    return SimpleNamespace(**columns, _mapping=columns)
