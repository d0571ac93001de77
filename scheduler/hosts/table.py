"""The fleet in columns: one row per (host, node), one array per attribute that is read often.

Rows are added, updated in place and removed without rebuilding anything else.  The table does no
I/O and knows no clock; whoever changes it holds the worker's decision lock.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler import errors
from scheduler.hosts import columns
from scheduler.hosts.documents import DocumentPool
from scheduler.hosts.journal import Journal
from scheduler.hosts.service_record import ServiceRecord

LOG = logging.getLogger(__name__)

NEVER = float("-inf")
_FIRST_CAPACITY = 64
_NODES_NAMED = 10
_PLAIN_MAPPINGS = (
    "rows", "row_of_node", "services", "_last_seen", "capabilities", "host_of_instance", "cells",
)  # fmt: skip
_NO_SERVICE: Mapping[str, Any] = MappingProxyType({})
Key = tuple[str, str | None]


class HostTable:
    """Columns, documents and the order of candidates (by compute-node id).

    Every change goes through a method and is noted in the journal ``changes``; of heartbeats only
    ``heartbeats`` tells.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, int] = {}
        self.rows_of_host: dict[str, list[int]] = {}
        #: By name in lower case the hosts that are not spelt so.
        self._spellings: dict[str, list[str]] = {}
        self.row_of_node: dict[int, int] = {}
        self.services: dict[str, Mapping[str, Any]] = {}
        self.aggregates_of_host: Mapping[str, tuple[Any, ...]] = {}
        self._last_seen: dict[str, float] = {}
        self.instances: dict[str, dict[str, Any]] = {}
        #: What compute nodes of Havana's kind say of themselves, besides their row.
        self.capabilities: dict[Key, Mapping[str, Any]] = {}
        self.host_of_instance: dict[str, str] = {}
        #: The cells that the fleet is divided into, and whether each is disabled; may be empty.
        self.cells: dict[str, bool] = {}
        self.pools = {
            name: DocumentPool(parse, functools.partial(self._complain, name))
            for name, parse in columns.DOCUMENT_PARSERS.items()
        }
        self.changes = Journal()
        self.heartbeats = Journal()
        #: Position of the journal when each row was last given to a host.
        self.given_at: dict[int, int] = {}
        self._free: list[int] = []
        self._capacity = 0
        self._used = 0
        self._order: np.ndarray | None = None
        self._in_order = True
        self._columns: dict[str, np.ndarray] = {}
        self._documents: dict[str, np.ndarray] = {}
        self._read_only: dict[str, np.ndarray] = {}
        self._objects: dict[str, list[Any]] = {name: [] for name in columns.OBJECT_COLUMNS}
        self._grow(_FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self.rows)

    def copy(self) -> HostTable:
        """A table of the same content; what becomes of one leaves the other as it is.

        A copy does not tell of documents that cannot be read: this table does.
        """
        twin = copy.copy(self)
        for name in _PLAIN_MAPPINGS:
            setattr(twin, name, dict(getattr(self, name)))
        twin.rows_of_host = {host: list(rows) for host, rows in self.rows_of_host.items()}
        twin._spellings = {lower: list(names) for lower, names in self._spellings.items()}
        twin.instances = {host: dict(several) for host, several in self.instances.items()}
        twin.pools = {name: pool.copy() for name, pool in self.pools.items()}
        twin.changes, twin.heartbeats = Journal(), Journal()
        twin.given_at = dict.fromkeys(self.rows.values(), 0)
        twin._free = list(self._free)
        twin._columns = {name: array.copy() for name, array in self._columns.items()}
        twin._documents = {name: array.copy() for name, array in self._documents.items()}
        twin._objects = {name: list(values) for name, values in self._objects.items()}
        twin._read_only = {}
        twin._show_read_only()
        return twin

    @property
    def capacity(self) -> int:
        """One more than the highest row number there may be."""
        return self._capacity

    # --- reading -------------------------------------------------------------------------

    def column(self, name: str) -> np.ndarray:
        """The whole array of a numeric column, indexed by row number; to be read only."""
        return self._read_only[name]

    def document_numbers(self, name: str) -> np.ndarray:
        """Per row the number of its document in ``pools[name]``; to be read only."""
        return self._read_only[name]

    def objects(self, name: str) -> list[Any]:
        """A copy of the whole list of an object column, indexed by row number."""
        return self._objects[name][:]

    def value(self, row: int, name: str) -> Any:
        """One row's value of a numeric, document (parsed) or object column."""
        if name in self._columns:
            return self._columns[name].item(row)
        if name in self._documents:
            return self.pools[name].parsed(int(self._documents[name][row]))
        return self._objects[name][row]

    def text(self, row: int, name: str) -> Any:
        """One row's value of an object column."""
        return self._objects[name][row]

    def content(self, row: int, name: str) -> Any:
        """One row's document as it was stored."""
        return self.pools[name].content(int(self._documents[name][row]))

    def service(self, row: int) -> Mapping[str, Any]:
        """The read-only service record of the row's host."""
        return self.services.get(self._objects["host"][row], _NO_SERVICE)

    def last_seen(self, host: str) -> float:
        """When the host's service was last heard from, seconds since the epoch."""
        return self._last_seen.get(host, NEVER)

    @property
    def order(self) -> np.ndarray:
        """Row numbers of every host that has a service record, by compute-node id."""
        if self._order is None:
            rows = np.flatnonzero(self._columns["has_service"])
            order = rows[np.argsort(self._columns["node_id"][rows], kind="stable")]
            self._in_order = bool((order == rows).all())
            self._order = order
        return self._order

    @property
    def in_order(self) -> bool:
        """Whether ``order`` is that of the row numbers."""
        return len(self.order) == 0 or self._in_order

    def hosts_without_service(self) -> list[str]:
        """Hosts that have a compute node and no service record, sorted."""
        return sorted(host for host in self.rows_of_host if host not in self.services)

    # --- changing ------------------------------------------------------------------------

    def put(self, key: Key, values: Mapping[str, Any]) -> int:
        """Add or update the row of *key* with column, document content and object *values*."""
        row = self.rows.get(key)
        if row is None:
            row = self._add(key)
        node_id_before = int(self._columns["node_id"][row])
        self.update(row, values)
        node_id = int(self._columns["node_id"][row])
        if self.row_of_node.get(node_id) != row:
            self.row_of_node.pop(node_id_before, None)
            self.row_of_node[node_id] = row
            self._order = None
        return row

    def update(self, row: int, values: Mapping[str, Any]) -> None:
        """Set column, document content and object *values* of one row; its identity stays."""
        changed = 0
        for name, value in values.items():
            if name in self._documents:
                changed |= self._replace(row, name, value)
                continue
            kept: Any = self._columns[name] if name in self._columns else self._objects[name]
            if kept[row] != value:
                kept[row] = value
                changed |= columns.BITS[name]
        if changed:
            self.changes.note(row, changed)

    def add(self, row: int, amounts: Mapping[str, int]) -> None:
        """Add to the numbers of one row; negative *amounts* take away."""
        changed = 0
        for name, amount in amounts.items():
            self._columns[name][row] += amount
            changed |= columns.BITS[name]
        self.changes.note(row, changed)

    def add_many(self, times: Mapping[int, int], amounts: Mapping[str, int]) -> None:
        """Add to the numbers of some rows, by row so many times."""
        rows = list(times)
        factors = np.fromiter(times.values(), dtype=np.int64, count=len(rows))
        for name, amount in amounts.items():
            self._columns[name][rows] += amount * factors
        self.changes.note_all(rows, columns.bits(amounts))

    def set_document(self, row: int, name: str, content: Any) -> None:
        """Replace one document of one row by *content*."""
        if changed := self._replace(row, name, content):
            self.changes.note(row, changed)

    def _replace(self, row: int, name: str, content: Any) -> int:
        """The bit of the document if it is another one now."""
        numbers, pool = self._documents[name], self.pools[name]
        new = pool.acquire(content)
        old = int(numbers[row])
        numbers[row] = new
        if old >= 0:
            pool.release(old)
        return 0 if new == old else columns.BITS[name]

    def remove(self, key: Key) -> None:
        """Take the row of *key* out; its number may serve another host later."""
        row = self.rows.pop(key)
        self.row_of_node.pop(int(self._columns["node_id"][row]), None)
        host_rows = self.rows_of_host[key[0]]
        host_rows.remove(row)
        if not host_rows:
            del self.rows_of_host[key[0]]
            self._forget_spelling(key[0])
        for name, numbers in self._documents.items():
            if numbers[row] >= 0:
                self.pools[name].release(int(numbers[row]))
                numbers[row] = -1
        for values in self._objects.values():
            values[row] = None
        self._free.append(row)
        self._columns["has_service"][row] = False
        self._order = None
        self.changes.note(row, columns.EVERYTHING)

    def set_service(self, host: str, record: Mapping[str, Any] | None, last_seen: float) -> None:
        """Set or (None) drop the service record of *host*; *last_seen* in epoch seconds."""
        rows = self.rows_of_host.get(host, ())
        if (record is None) == (host in self.services):
            self._order = None
            for row in rows:
                self._columns["has_service"][row] = record is not None
                self.changes.note(row, columns.EVERYTHING)
        if record is None:
            self.services.pop(host, None)
            self._last_seen.pop(host, None)
            return
        self.services[host] = ServiceRecord(record)
        self._last_seen[host] = last_seen
        for row in rows:
            self._copy_service(row, host)

    def is_known(self, host: str) -> bool:
        """Whether anything is known of *host*: a compute node, a service, an instance on it."""
        return host in self.rows_of_host or host in self.services or host in self.instances

    def set_aggregates(self, aggregates_of_host: Mapping[str, tuple[Any, ...]]) -> None:
        """Set every host's aggregates; hosts not named are in none."""
        self.aggregates_of_host = aggregates_of_host
        for host, rows in self.rows_of_host.items():
            content = columns.aggregates_content(aggregates_of_host.get(host, ()))
            for row in rows:
                self.set_document(row, "aggregates", content)

    def put_instance(self, host: str, uuid: str, instance: Any) -> None:
        """Note that *instance* runs on *host*, and nowhere else."""
        if self.host_of_instance.get(uuid, host) != host:
            self.drop_instance(uuid)
        self.instances.setdefault(host, {})[uuid] = instance
        self.host_of_instance[uuid] = host
        self._note_instances(host)

    def drop_instance(self, uuid: str) -> None:
        """Forget the instance, wherever it was."""
        host = self.host_of_instance.pop(uuid, None)
        if host is None:
            return
        instances = self.instances[host]
        del instances[uuid]
        if not instances:
            del self.instances[host]
        self._note_instances(host)

    def _note_instances(self, host: str) -> None:
        for row in self.rows_of_host.get(host, ()):
            self.changes.note(row, columns.BITS[columns.INSTANCES])

    def _complain(self, name: str, number: int, error: errors.NovaException) -> None:
        rows = np.flatnonzero(self._documents[name] == number)[:_NODES_NAMED].tolist()
        nodes = ", ".join(str(self._objects["nodename"][row]) for row in rows)
        LOG.warning(
            "%s of compute node %s cannot be read and counts as none: %s", name, nodes, error
        )

    # --- inside --------------------------------------------------------------------------

    def _add(self, key: Key) -> int:
        host = key[0]
        # Hosts that come have higher ids than all others: behind these they are in order.
        if len(self._free) > max(len(self.rows), _FIRST_CAPACITY):
            row = self._free.pop()
        else:
            if self._used == self._capacity:
                self._grow(self._capacity * 2)
            row, self._used = self._used, self._used + 1
        for values in self._columns.values():
            values[row] = 0
        self._columns["updated_at"][row] = NEVER
        self._columns["service_last_seen"][row] = NEVER
        self._objects["host"][row], self._objects["nodename"][row] = key
        for name in self._documents:
            self._replace(row, name, None)
        aggregates = self.aggregates_of_host.get(host, ())
        self._replace(row, "aggregates", columns.aggregates_content(aggregates))
        if host in self.services:
            self._columns["has_service"][row] = True
            self._copy_service(row, host)
        self.changes.note(row, columns.EVERYTHING)
        self.given_at[row] = self.changes.position
        self.rows[key] = row
        if host in self.rows_of_host:
            self.rows_of_host[host].append(row)
        else:
            self.rows_of_host[host] = [row]
            if (lower := host.lower()) != host:
                self._spellings.setdefault(lower, []).append(host)
        self._order = None
        return row

    def _forget_spelling(self, host: str) -> None:
        if (lower := host.lower()) == host:
            return
        self._spellings[lower].remove(host)
        if not self._spellings[lower]:
            del self._spellings[lower]

    def _grow(self, capacity: int) -> None:
        for name, kind in columns.COLUMN_TYPES.items():
            old = self._columns.get(name, np.zeros(0, dtype=kind))
            self._columns[name] = np.append(old, np.zeros(capacity - len(old), dtype=kind))
        for name in columns.DOCUMENT_PARSERS:
            old = self._documents.get(name, np.zeros(0, dtype=np.int64))
            self._documents[name] = np.append(old, np.full(capacity - len(old), -1))
        for values in self._objects.values():
            values.extend([None] * (capacity - len(values)))
        self._show_read_only()
        self._capacity = capacity

    def _show_read_only(self) -> None:
        for name, array in {**self._columns, **self._documents}.items():
            self._read_only[name] = array.view()
            self._read_only[name].flags.writeable = False

    def _copy_service(self, row: int, host: str) -> None:
        record = self.services[host]
        flags = {
            "service_disabled": bool(record.get("disabled")),
            "service_forced_down": bool(record.get("forced_down")),
        }
        self.update(row, flags)
        self._columns["service_last_seen"][row] = self._last_seen[host]
        self.heartbeats.note(row, columns.EVERYTHING)

    def rows_showing_instances(self, hosts: Iterable[str]) -> list[int]:
        """Rows of the *hosts* named, except the bare-metal ones: those show no instances."""
        bare_metal = self._columns["bare_metal"]
        return [row for row in self.row_numbers(hosts) if not bare_metal[row]]

    def showing_instances(self, uuids: Iterable[str]) -> dict[int, int]:
        """How many of the instances *uuids* each row shows; those that show none are left out."""
        homes, bare_metal = self.host_of_instance, self._columns["bare_metal"]
        found: dict[int, int] = {}
        for uuid in set(uuids):
            host = homes.get(uuid)
            for row in () if host is None else self.rows_of_host.get(host, ()):
                if not bare_metal[row]:
                    found[row] = found.get(row, 0) + 1
        return found

    def spellings(self, names: Iterable[str]) -> list[str]:
        """The hosts whose name in lower case is one of *names*."""
        found: list[str] = []
        for name in names:
            found.extend(self._spellings.get(name, ()))
            if name in self.rows_of_host and name == name.lower():
                found.append(name)
        return found

    def row_numbers(self, hosts: Iterable[str]) -> list[int]:
        """Rows of all nodes of the *hosts* named (exact case); unknown names are left out."""
        return [row for host in hosts for row in self.rows_of_host.get(host, ())]
