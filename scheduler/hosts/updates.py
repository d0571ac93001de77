"""Bringing what a read found into the host table.  The caller holds the decision lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oslo_log import log as logging

from scheduler import objects, semantics
from scheduler.db.fleet import Cell, FleetChanges
from scheduler.hosts import rows
from scheduler.hosts.instances import recorded, tracked
from scheduler.hosts.refresh import Repairs
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.rows import Ratios
from scheduler.hosts.table import HostTable
from scheduler.semantics import Semantics

LOG = logging.getLogger(__name__)

_FLAGS = ("disabled", "forced_down")
#: Rows of different cells may have the same id; a cell's number goes above these bits.
_ID_BITS = 40

Decoder = Callable[[Any, Ratios, str | None], dict[str, Any]]
"""From a compute node's row, the ratios and its cell to the values of the table."""


class TableUpdater:
    """Applies changes to one table and its reservations."""

    def __init__(
        self,
        reservations: Reservations,
        ratios: Ratios,
        cell_uuid: str,
        chosen: Semantics = semantics.CURRENT,
        decode: Decoder = rows.values,
    ) -> None:
        self.reservations = reservations
        self.table: HostTable = reservations.table
        self.ratios = ratios
        self.repairs = Repairs()
        self._semantics = chosen
        self._decode = decode
        self._undivided = Cell(cell_uuid)
        self._cell_of_host: dict[str, str] = {}
        self._flagged: dict[str, dict[str, tuple[bool, bool]]] = {}
        self._warned_without_service: set[str] = set()
        #: Rows of instances as they were read last, oldest first, and when.
        self._recent: dict[str, tuple[Any, float]] = {}
        #: Instances that are on no host any more, as soon as they have no reservation.
        self._to_drop: set[str] = set()

    def apply(self, changes: FleetChanges, now: float) -> None:
        """Apply *changes*; *now* (seconds since the epoch) ends reservations."""
        cell = changes.cell or self._undivided
        if changes.cell is not None:
            self.table.cells[cell.uuid] = cell.disabled
        self.repairs.begin(cell.uuid, full=changes.full, now=now)
        self._nodes(changes.nodes, cell, full=changes.full)
        if changes.services is not None:
            self._services(changes.services, cell)
        for record in changes.heartbeats:
            if record.host in self.table.services:
                self._service(record)
        self._flags(changes.flagged, cell)  # these are newer than the heartbeats
        if changes.aggregates is not None:
            self.set_aggregates(changes.aggregates)
        self._instances(changes, cell)
        self._settle(changes.instances, now)
        if changes.full:
            self._forget_strangers()
        if changes.full or changes.services is not None:
            self._warn_of_missing_services()

    def set_aggregates(self, aggregates: Iterable[objects.Aggregate]) -> None:
        """Make *aggregates* all there are."""
        of_host: dict[str, tuple[objects.Aggregate, ...]] = {}
        for aggregate in sorted(aggregates, key=lambda each: each.id):
            for host in aggregate.hosts or ():
                of_host[host] = (*of_host.get(host, ()), aggregate)
        self.table.set_aggregates(of_host)

    def _nodes(self, nodes: Iterable[Any], cell: Cell, *, full: bool) -> None:
        live = set()
        for row in nodes:
            key, node_id = rows.key(row), _node_id(row, cell)
            known = self.table.rows.get(key)
            if row.host is None:
                self._rename(node_id, None)  # half-written: nobody can be told to build there
            elif not row.deleted:
                live.add(key)
                self._node(row, key, known, cell)
            elif known is not None and self.table.value(known, "node_id") == node_id:
                self._remove(key)
        if full:
            for key in self.table.rows.keys() - live:
                if self._cell_of_host.get(key[0]) == cell.uuid:
                    self._remove(key)

    def _node(self, row: Any, key: Any, known: int | None, cell: Cell) -> None:
        updated_at = None if known is None else self.table.value(known, "updated_at")
        self.repairs.look(row, updated_at)
        self._cell_of_host[key[0]] = cell.uuid
        self._rename(_node_id(row, cell), key)
        if not self.reservations.accepts(key, rows.seconds(row.updated_at)):
            return
        values = self._decode(row, self.ratios, cell.uuid)
        keeps_numbers = key in self.table.rows and not values["reported"]
        self.table.put(key, {**values, "node_id": _node_id(row, cell)})
        if not keeps_numbers:
            self.reservations.reapply(key)

    def _rename(self, node_id: int, key: Any) -> None:
        """Drop the row of another key than *key* that this compute node was known under."""
        table = self.table
        number = table.row_of_node.get(node_id)
        if number is not None and number != table.rows.get(key):
            self._remove((table.value(number, "host"), table.value(number, "nodename")))

    def _remove(self, key: Any) -> None:
        LOG.info("Removing dead compute node %s:%s from scheduler", *key)
        self.table.remove(key)

    def _services(self, records: Sequence[Any], cell: Cell) -> None:
        for host in self.table.services.keys() - {record.host for record in records}:
            if self._cell_of_host.get(host) == cell.uuid:
                self.table.set_service(host, None, 0.0)
        for record in records:
            if record.host is not None:
                self._cell_of_host[record.host] = cell.uuid
                self._service(record)

    def _service(self, record: Any) -> None:
        last_seen = rows.last_seen(record, self._semantics)
        self.table.set_service(rows.once(record.host), record._mapping, last_seen)

    def _flags(self, flagged: dict[str, tuple[bool, bool]], cell: Cell) -> None:
        before = self._flagged.get(cell.uuid, {})
        for host in before.keys() | flagged.keys():
            service = self.table.services.get(host)
            flags = flagged.get(host, (False, False))
            if service is not None and tuple(bool(service.get(f)) for f in _FLAGS) != flags:
                record = {**service, **dict(zip(_FLAGS, flags, strict=True))}
                self.table.set_service(host, record, self.table.last_seen[host])
        self._flagged[cell.uuid] = flagged

    def _instances(self, changes: FleetChanges, cell: Cell) -> None:
        placed = self.reservations.uuids()  # placeholders stay with their reservation
        for row in changes.instances:
            self._to_drop.discard(row.uuid)
            if row.host and not row.deleted:
                known = self.table.instances.get(row.host, {}).get(row.uuid)
                self.repairs.look(row, None if known is None else known.updated_at)
                properties = recorded(changes.system_metadata.get(row.uuid))
                instance = tracked(row, row.host, properties)
                self.table.put_instance(row.host, row.uuid, instance)
            else:
                self._to_drop.add(row.uuid)
        for uuid in [each for each in self._to_drop if each not in placed]:
            self._to_drop.discard(uuid)
            self.table.drop_instance(uuid)
        if changes.full:
            live = placed | {row.uuid for row in changes.instances}
            vanished = [
                uuid
                for uuid, host in self.table.host_of_instance.items()
                if uuid not in live and self._cell_of_host.get(host, cell.uuid) == cell.uuid
            ]
            for uuid in vanished:
                self.table.drop_instance(uuid)

    def _settle(self, found: Sequence[Any], now: float) -> None:
        """End reservations by the rows just *found*, and by those of late, not shown again.

        A reservation may be made after the row was read that tells that its instance is gone.
        """
        for row in found:
            self._recent.pop(row.uuid, None)
            self._recent[row.uuid] = (row, now)
        for uuid in list(self._recent):
            if now - self._recent[uuid][1] <= self.reservations.expiry_seconds:
                break
            del self._recent[uuid]
        earlier = (self._recent.keys() & self.reservations.uuids()) - {row.uuid for row in found}
        several = [*found, *(self._recent[uuid][0] for uuid in earlier)]
        self.reservations.settle(now, several)

    def _forget_strangers(self) -> None:
        """Keep nothing of hosts that are gone, or that somebody told of and that never came."""
        known, capabilities = self.table.known_hosts(), self.table.capabilities
        for host in self._cell_of_host.keys() - known:
            del self._cell_of_host[host]
        for key in [each for each in capabilities if each[0] not in known]:
            del capabilities[key]
        self.reservations.forget_removed_hosts()

    def _warn_of_missing_services(self) -> None:
        missing = self.table.rows_of_host.keys() - self.table.services.keys()
        for host in sorted(missing - self._warned_without_service):
            LOG.warning("No compute service record found for host %s", host)
        self._warned_without_service = missing


def _node_id(row: Any, cell: Cell) -> int:
    """The id of a compute node's row as one that no other cell has: cells come in their order."""
    return (cell.number << _ID_BITS) + int(row.id)
