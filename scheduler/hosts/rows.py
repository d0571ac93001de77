"""From rows to the host table: coercions and changes (scheduling, 6.1, 6.2; database, 3.1, 5)."""

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from oslo_log import log as logging

from scheduler import objects, semantics
from scheduler.db.fleet import FleetChanges
from scheduler.db.fleet_rows import is_complete
from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER, seconds
from scheduler.hosts.instances import recorded, tracked
from scheduler.hosts.refresh import MISSED_AFTER_SECONDS, ReadCost
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable, Key
from scheduler.objects.fields import LARGEST_SIZE
from scheduler.objects.registry import read_json
from scheduler.pci import Pools
from scheduler.semantics import Ratios, Semantics

LOG = logging.getLogger(__name__)

#: ``hypervisor_type`` of the bare-metal nodes.
IRONIC = "ironic"
_DOCUMENTS = ("cpu_info", "stats", "supported_instances", "numa_topology", "metrics")
#: Columns that are not read from the row of a bare-metal node.
_UNKNOWN_OF_BARE_METAL = {
    **dict.fromkeys(("disk_mb_used", "num_instances", "num_io_ops"), 0),
    **dict.fromkeys(("host_ip", "numa_topology", "pci_stats", "metrics")),
}
#: Rows of different cells may have the same id; a cell's number goes above these bits.
_ID_BITS = 40
STARTS_SECONDS: Final = 60
"""A compute service writes its node and its record one after the other when it first starts."""


def last_seen(service: Any, chosen: Semantics = semantics.CURRENT) -> float:
    """When the *service* of a row was last heard from, seconds since the epoch."""
    return seconds(chosen.last_heartbeat(service))


def key(row: Any) -> Key:
    """(host, node) of a compute node's row: mostly the same name, as its service has it, too."""
    return _once(row.host), _once(row.hypervisor_hostname)


def _once(text: Any) -> Any:
    """*text* as the one object that is kept of all texts that are equal."""
    return sys.intern(text) if type(text) is str else text


@dataclass(slots=True)
class Complaints:
    """Warnings about what hosts report, each kind in one line; a host is named once."""

    _known: dict[str, set[str]] = field(default_factory=dict)
    _new: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, host: str, text: str) -> None:
        """Keep *text* about *host*, unless the same *kind* of warning was logged of it."""
        known = self._known.setdefault(kind, set())
        if host not in known:
            known.add(host)
            self._new.setdefault(kind, []).append(text)

    def log(self) -> None:
        for noted in self._new.values():
            others = f"; likewise {len(noted) - 1} other host(s)" if len(noted) > 1 else ""
            LOG.warning("%s%s", noted[0], others)
        self._new.clear()


def values(
    row: Any,
    ratios: Ratios,
    cell_uuid: str | None,
    *,
    knows_bare_metal: bool = False,
    complaints: Complaints | None = None,
) -> dict[str, Any]:
    """Column, document and object values for the host table.

    A row that its host never filled in (``free_disk_gb`` is NULL) yields zeros and ``reported``
    False.  Where some nodes are bare metal (reference page scheduling, section 5.8) these are
    read without what nobody knows of them.
    """
    is_metal = knows_bare_metal and row.hypervisor_type == IRONIC
    identity = {
        "node_id": row.id,
        "uuid": row.uuid,
        "cell_uuid": cell_uuid,
        "updated_at": seconds(row.updated_at),
        "reported": row.free_disk_gb is not None,
        "bare_metal": is_metal,
    }
    if row.free_disk_gb is None:
        LOG.debug("Ignoring compute node %s as its usage has not been updated yet.", row.uuid)
        return identity
    documents = {name: getattr(row, name) for name in _DOCUMENTS}
    documents["pci_stats"] = Pools() if row.pci_stats is None else row.pci_stats
    found = {**identity, **_numbers(row, ratios, complaints or Complaints()), **documents}
    if is_metal:
        found.update(_UNKNOWN_OF_BARE_METAL, free_disk_mb=1024 * int(row.free_disk_gb))
    return found


def _numbers(row: Any, ratios: Ratios, complaints: Complaints) -> dict[str, Any]:
    stats = _stats(row.stats)
    return {
        "total_usable_ram_mb": row.memory_mb or 0,
        "free_ram_mb": row.free_ram_mb or 0,
        "total_usable_disk_gb": row.local_gb or 0,
        "disk_mb_used": (row.local_gb_used or 0) * 1024,
        "free_disk_mb": 1024 * _free_disk_gb(row, complaints),
        "vcpus_total": row.vcpus or 0,
        "vcpus_used": row.vcpus_used or 0,
        "num_instances": _count(stats, "num_instances", row, complaints),
        "num_io_ops": _count(stats, "io_workload", row, complaints),
        "failed_builds": _count(stats, "failed_builds", row, complaints),
        "hypervisor_version": row.hypervisor_version or 0,
        "hypervisor_type": _once(row.hypervisor_type),
        "host_ip": row.host_ip,
        "ratios_left_open": sum(
            bit for name, bit in columns.RATIO_BITS.items() if not getattr(row, name)
        ),
        "cpu_allocation_ratio": row.cpu_allocation_ratio or ratios.cpu,
        "ram_allocation_ratio": row.ram_allocation_ratio or ratios.ram,
        "disk_allocation_ratio": row.disk_allocation_ratio or ratios.disk,
    }


def _free_disk_gb(row: Any, complaints: Complaints) -> int:
    least, free = row.disk_available_least, row.free_disk_gb
    if least is not None and least > free and row.hypervisor_type != IRONIC:
        host = row.hypervisor_hostname
        amounts = f"({least} GB > {free} GB)"
        text = f"Host {host} has more disk space than database expected {amounts}"
        complaints.note("disk", host, text)
    return int(free if least is None else min(free, least))


def _stats(text: str | None) -> dict[str, Any]:
    try:
        stats = read_json(text) if text else None
    except ValueError:
        stats = None
    return stats if isinstance(stats, dict) else {}


def _count(stats: dict[str, Any], name: str, row: Any, complaints: Complaints) -> int:
    value = stats.get(name, 0)
    try:
        return max(-LARGEST_SIZE, min(LARGEST_SIZE, int(value)))
    except (TypeError, ValueError, OverflowError):
        host = row.hypervisor_hostname
        text = f"Compute node {host} reports {value!r:.80} as {name}; counted as 0"
        complaints.note(name, host, text)
        return 0


def apply_ratios(table: HostTable, ratios: Ratios) -> None:
    """Give rows that leave a ratio to the configuration that of *ratios*."""
    left_open = table.column("ratios_left_open")
    for name, bit in columns.RATIO_BITS.items():
        ratio = getattr(ratios, name.partition("_")[0])
        for row in table.rows.values():
            if left_open[row] & bit:
                table.update(row, {name: ratio})


class TableUpdater:
    """Updater of one table and its reservations.  The caller holds the decision lock."""

    def __init__(
        self,
        reservations: Reservations,
        ratios: Ratios,
        cell_uuid: str,
        chosen: Semantics = semantics.CURRENT,
        *,
        knows_bare_metal: bool = False,
    ) -> None:
        self.reservations = reservations
        self.table: HostTable = reservations.table
        self.aggregates: dict[int, objects.Aggregate] = {}
        self.ratios = ratios
        self._semantics = chosen
        self._knows_bare_metal = knows_bare_metal
        self._undivided = objects.CellMapping(uuid=cell_uuid, id=0)
        self._read_at: dict[str, float] = {}
        self.cell_of_host: dict[str, str] = {}
        #: Host names by the ids of their services, per cell.
        self._service_hosts: dict[str, dict[int, str]] = {}
        #: Hosts that have no service, and since when.
        self._without_service: dict[str, float] = {}
        self._complaints = Complaints()
        #: Rows of instances as they were read last, oldest first, and when.
        self._recent: dict[str, tuple[Any, float]] = {}
        #: Instances that are on no host any more, as soon as they have no reservation.
        self._to_drop: set[str] = set()

    def apply(self, changes: FleetChanges, now: float, cost: ReadCost) -> None:
        """Apply *changes*; *now* (seconds since the epoch) ends reservations; adds to *cost*."""
        cell = changes.cell or self._undivided
        if changes.cell is not None:
            self.table.cells[cell.uuid] = cell.disabled
        cost.full |= changes.full
        before = self._read_at.get(cell.uuid, NEVER) if changes.full else NEVER
        self._read_at[cell.uuid] = now
        self._nodes(changes, cell, cost, before - MISSED_AFTER_SECONDS)
        if changes.services is not None:
            self._services(changes.services, cell)
        for record in changes.changed_services:
            if self._heard_host(cell, record.id) is not None:
                self._service(record)
        self.hear(changes)
        cost.repairs += changes.late_rows
        if changes.aggregates is not None:
            self.set_aggregates(changes.aggregates)
        self._instances(changes, cell, cost, before - MISSED_AFTER_SECONDS)
        self._settle(changes.instances, now)
        if changes.full:
            self._forget_strangers()
        if changes.full or changes.services is not None:
            missing = self.table.rows_of_host.keys() - self.table.services.keys()
            since = {host: self._without_service.get(host, now) for host in sorted(missing)}
            self._without_service = since
            for host in (host for host, began in since.items() if now - began >= STARTS_SECONDS):
                text = f"No compute service record found for host {host}"
                self._complaints.note("service", host, text)
        self._complaints.log()

    def hear(self, changes: FleetChanges) -> None:
        """Take heartbeats; all else is known from newer reads."""
        for service_id, columns_heard in changes.heartbeats.items():
            host = self._heard_host(changes.cell or self._undivided, service_id)
            if host is not None:
                record = {**self.table.services[host], **columns_heard}
                seen = last_seen(SimpleNamespace(**record), self._semantics)
                self.table.set_service(host, record, seen)

    def _heard_host(self, cell: objects.CellMapping, service_id: int) -> str | None:
        """The host whose service this is, of several the one that counts."""
        host = self._service_hosts.get(cell.uuid, {}).get(service_id)
        service = None if host is None else self.table.services.get(host)
        return host if service is not None and service["id"] == service_id else None

    def set_aggregates(self, aggregates: Iterable[objects.Aggregate]) -> None:
        self.aggregates = {each.id: each for each in aggregates}
        of_host: dict[str, tuple[objects.Aggregate, ...]] = {}
        for _id, aggregate in sorted(self.aggregates.items()):
            for host in aggregate.hosts or ():
                of_host[host] = (*of_host.get(host, ()), aggregate)
        self.table.set_aggregates(of_host)

    def _nodes(
        self, changes: FleetChanges, cell: objects.CellMapping, cost: ReadCost, missed_before: float
    ) -> None:
        live, table = set(), self.table
        ids: set[int] = set()
        incomplete: set[int] = set()
        for row in changes.nodes:
            # Of all cells no other compute node has this id; cells come in their order.
            known_as, node_id = key(row), (cell.id << _ID_BITS) + int(row.id)
            ids.add(node_id)
            if row.deleted:
                self._rename(node_id, None)
            elif not is_complete(row):
                incomplete.add(node_id)
                name = str(row.host or row.hypervisor_hostname)
                text = f"A compute node lacks host, name or uuid, or a number or time: {name}"
                self._complaints.note("incomplete", name, text)
                self._rename(node_id, None)  # nobody can build there
            else:
                known = table.rows.get(known_as)
                live.add(known_as)
                updated_at = None if known is None else table.value(known, "updated_at")
                cost.add(row, updated_at, missed_before)
                self._node(row, known_as, node_id, cell)
        if changes.full:
            ids = {each for each in table.incomplete if each >> _ID_BITS == cell.id}
        table.incomplete = table.incomplete - ids | incomplete
        for known_as in table.rows.keys() - live if changes.full else ():
            if self.cell_of_host.get(known_as[0]) == cell.uuid:
                self._remove(known_as)

    def _node(self, row: Any, known_as: Key, node_id: int, cell: objects.CellMapping) -> None:
        self.cell_of_host[known_as[0]] = cell.uuid
        self._rename(node_id, known_as)
        if not self.reservations.accepts(known_as, seconds(row.updated_at)):
            return
        found = values(
            row,
            self.ratios,
            cell.uuid,
            knows_bare_metal=self._knows_bare_metal,
            complaints=self._complaints,
        )
        keeps_numbers = known_as in self.table.rows and not found["reported"]
        self.table.put(known_as, {**found, "node_id": node_id})
        if not keeps_numbers:
            self.reservations.reapply(known_as)

    def _rename(self, node_id: int, known_as: Key | None) -> None:
        """Drop the row under which this compute node was known, if that was not *known_as*."""
        number = self.table.row_of_node.get(node_id)
        if number is not None and (known_as is None or number != self.table.rows.get(known_as)):
            self._remove(self.table.keys[number])

    def _remove(self, known_as: Key) -> None:
        LOG.info("Removing dead compute node %s:%s from scheduler", *known_as)
        self.table.remove(known_as)

    def _services(self, records: Sequence[Any], cell: objects.CellMapping) -> None:
        for host in self.table.services.keys() - {record.host for record in records}:
            if self.cell_of_host.get(host) == cell.uuid:
                self.table.set_service(host, None, 0.0)
        self._service_hosts[cell.uuid] = {record.id: record.host for record in records}
        for record in records:
            if record.host is not None:
                self.cell_of_host[record.host] = cell.uuid
                self._service(record)

    def _service(self, record: Any) -> None:
        seen = last_seen(record, self._semantics)
        self.table.set_service(_once(record.host), record._mapping, seen)

    def _instances(
        self, changes: FleetChanges, cell: objects.CellMapping, cost: ReadCost, missed_before: float
    ) -> None:
        placed = self.reservations.uuids()  # placeholders stay with their reservation
        table = self.table
        for row in changes.instances:
            self._to_drop.discard(row.uuid)
            if row.host and not row.deleted:
                known = table.instances.get(row.host, {}).get(row.uuid)
                cost.add(row, None if known is None else known.updated_at, missed_before)
                properties = recorded(changes.system_metadata.get(row.uuid))
                table.put_instance(row.host, row.uuid, tracked(row, row.host, properties))
            else:
                self._to_drop.add(row.uuid)
        gone = {uuid for uuid in self._to_drop if uuid not in placed}  # "-" would walk all placed
        self._to_drop -= gone
        if changes.full:
            live = placed | {row.uuid for row in changes.instances}
            gone.update(
                uuid
                for uuid, host in table.host_of_instance.items()
                if uuid not in live and self.cell_of_host.get(host, cell.uuid) == cell.uuid
            )
        for uuid in gone:
            table.drop_instance(uuid)

    def _settle(self, found: Sequence[Any], now: float) -> None:
        """End reservations by the rows just *found*, and by those of late, not shown again.

        A reservation may be made, or a claim counted, after the row was read that says that its
        instance is gone.
        """
        self.reservations.take_claims()
        for row in found:
            self._recent.pop(row.uuid, None)
            self._recent[row.uuid] = (row, now)
        oldest = now - self.reservations.expiry_seconds
        late = list(itertools.takewhile(lambda each: each[1][1] < oldest, self._recent.items()))
        for uuid, _found in late:
            del self._recent[uuid]
        earlier = (self._recent.keys() & self.reservations.uuids()) - {row.uuid for row in found}
        several = [*found, *(self._recent[uuid][0] for uuid in earlier)]
        self.reservations.settle(now, several)

    def _forget_strangers(self) -> None:
        """Keep nothing of hosts that are gone, or that somebody reported and that never came."""
        known, capabilities = self.table.known_hosts(), self.table.capabilities
        for host in self.cell_of_host.keys() - known:
            del self.cell_of_host[host]
        for each in [each for each in capabilities if each[0] not in known]:
            del capabilities[each]
