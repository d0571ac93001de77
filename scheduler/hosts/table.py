"""The fleet in columns: one row per (host, node), one array per attribute that is read often.

Rows are added, updated in place and removed without rebuilding anything else.  The table does no
I/O and knows no clock; whoever changes it holds the worker's decision lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER
from scheduler.hosts.store import FIRST_CAPACITY, ColumnStore

__all__ = ["NEVER", "HostTable", "Key"]

_COPIED = ("rows", "row_of_node", "services", "capabilities", "host_of_instance", "cells")
_NO_SERVICE: Mapping[str, Any] = MappingProxyType({})
Key = tuple[str, str | None]


class HostTable(ColumnStore):
    """Hosts, services, instances, and the order of candidates (by compute-node id).

    Every change goes through a method.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[Key, int] = {}
        self.rows_of_host: dict[str, list[int]] = {}
        self.row_of_node: dict[int, int] = {}
        self.services: dict[str, Mapping[str, Any]] = {}
        #: Number of services by version.
        self._service_versions: Counter[int] = Counter()
        self.aggregates_of_host: Mapping[str, tuple[Any, ...]] = {}
        self.instances: dict[str, dict[str, Any]] = {}
        #: Reports of compute nodes of Havana's kind about themselves, besides their row.
        self.capabilities: dict[Key, Mapping[str, Any]] = {}
        self.host_of_instance: dict[str, str] = {}
        #: The cells that the fleet is divided into, and whether each is disabled; may be empty.
        self.cells: dict[str, bool] = {}
        self._last_seen: dict[str, float] = {}
        self._order: np.ndarray | None = None
        self._is_dense = True

    def __len__(self) -> int:
        return len(self.rows)

    def copy(self) -> Self:
        """See the base class."""
        twin = super().copy()
        for name in (*_COPIED, "_last_seen"):
            setattr(twin, name, dict(getattr(self, name)))
        twin._service_versions = self._service_versions.copy()
        twin.rows_of_host = {host: list(rows) for host, rows in self.rows_of_host.items()}
        twin.instances = {host: dict(several) for host, several in self.instances.items()}
        return twin

    # --- reading -------------------------------------------------------------------------

    def service(self, row: int) -> Mapping[str, Any]:
        """The read-only service record of the row's host."""
        return self.services.get(self.text(row, "host"), _NO_SERVICE)

    def last_seen(self, host: str) -> float:
        """When the host's service was last heard from, seconds since the epoch."""
        return self._last_seen.get(host, NEVER)

    @property
    def lowest_service_version(self) -> int:
        """The version of the oldest service; 0 without any."""
        return min((version for version, n in self._service_versions.items() if n), default=0)

    @property
    def order(self) -> np.ndarray:
        """Row numbers of every host that has a service record, by compute-node id."""
        if self._order is None:
            rows = np.flatnonzero(self._columns["has_service"])
            order = rows[np.argsort(self._columns["node_id"][rows], kind="stable")]
            self._is_dense = bool((order == np.arange(len(order))).all())
            self._order = order
        return self._order

    @property
    def is_dense(self) -> bool:
        """True when ``order`` is all row numbers from 0 on, so that slices of columns do."""
        return len(self.order) > 0 and self._is_dense

    def hosts_without_service(self) -> list[str]:
        """Hosts that have a compute node and no service record, sorted."""
        return sorted(self.rows_of_host.keys() - self.services.keys())

    def is_known(self, host: str) -> bool:
        """True when anything is known of *host*: a compute node, a service, an instance on it."""
        return host in self.rows_of_host or host in self.services or host in self.instances

    def row_numbers(self, hosts: Iterable[str]) -> list[int]:
        """Rows of all nodes of the *hosts* named (exact case); unknown names are left out."""
        return [row for host in hosts for row in self.rows_of_host.get(host, ())]

    def rows_showing_instances(self, hosts: Iterable[str]) -> list[int]:
        """Rows of the *hosts* named, except the bare-metal ones: those show no instances."""
        bare_metal = self._columns["bare_metal"]
        return [row for row in self.row_numbers(hosts) if not bare_metal[row]]

    def showing_instances(self, uuids: Iterable[str]) -> dict[int, int]:
        """Number of the instances *uuids* that each row shows; rows without any are left out."""
        found: dict[int, int] = {}
        for uuid in self.host_of_instance.keys() & set(uuids):
            for row in self.rows_showing_instances((self.host_of_instance[uuid],)):
                found[row] = found.get(row, 0) + 1
        return found

    def spellings(self, names: Iterable[str]) -> list[str]:
        """The hosts whose name in lower case is one of *names*."""
        pool, _numbers = self.combinations(("host",))
        by_lower = pool.derived("spellings", _by_lower_case)
        return [host for name in names for host in by_lower.get(name, ())]

    # --- changing ------------------------------------------------------------------------

    def put(self, key: Key, values: Mapping[str, Any]) -> int:
        """Add or update the row of *key* with column, document content and object *values*."""
        row = self.rows.get(key)
        if row is None:
            row = self._add(key)
        node_id_before = self.value(row, "node_id")
        self.update(row, values)
        node_id = self.value(row, "node_id")
        if self.row_of_node.get(node_id) != row:
            self.row_of_node.pop(node_id_before, None)
            self.row_of_node[node_id] = row
            self._order = None
        return row

    def _add(self, key: Key) -> int:
        host = key[0]
        # Hosts that come have higher ids than all others: behind these they are in order.
        row = self._new_row(most_free=max(len(self.rows), FIRST_CAPACITY))
        self._objects["host"][row], self._objects["nodename"][row] = key
        self._set_aggregates(row, host)
        if host in self.services:
            self._columns["has_service"][row] = True
            self._copy_service(row, host)
        self._note((row,))
        self.given_at[row] = self.version
        self.rows[key] = row
        self.rows_of_host.setdefault(host, []).append(row)
        self._order = None
        return row

    def remove(self, key: Key) -> None:
        """Take the row of *key* out; its number may serve another host later."""
        row = self.rows.pop(key)
        self.row_of_node.pop(self.value(row, "node_id"), None)
        host_rows = self.rows_of_host[key[0]]
        host_rows.remove(row)
        if not host_rows:
            del self.rows_of_host[key[0]]
        self._free_row(row)
        self._columns["has_service"][row] = False
        self._order = None
        self._note((row,))

    def set_service(self, host: str, record: Mapping[str, Any] | None, last_seen: float) -> None:
        """Set or (None) drop the service record of *host*; *last_seen* in epoch seconds."""
        rows = self.row_numbers((host,))
        if rows and (record is None) == (host in self.services):
            self._order = None
            self._columns["has_service"][rows] = record is not None
            self._note(rows)
        for known, change in ((self.services.get(host), -1), (record, 1)):
            if known is not None:
                self._service_versions[known.get("version") or 0] += change
        if record is None:
            self.services.pop(host, None)
            self._last_seen.pop(host, None)
            return
        self.services[host] = MappingProxyType(record)
        self._last_seen[host] = last_seen
        for row in rows:
            self._copy_service(row, host)

    def _copy_service(self, row: int, host: str) -> None:
        record = self.services[host]
        flags = {
            "service_disabled": bool(record.get("disabled")),
            "service_forced_down": bool(record.get("forced_down")),
        }
        self.update(row, flags)
        self._columns["service_last_seen"][row] = self._last_seen[host]

    def set_aggregates(self, aggregates_of_host: Mapping[str, tuple[Any, ...]]) -> None:
        """Set every host's aggregates; hosts not named are in none."""
        self.aggregates_of_host = aggregates_of_host
        for host, rows in self.rows_of_host.items():
            for row in rows:
                self._set_aggregates(row, host)

    def _set_aggregates(self, row: int, host: str) -> None:
        aggregates = self.aggregates_of_host.get(host, ())
        self.update(row, {"aggregates": columns.aggregates_content(aggregates)})

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
            self._note((row,), ())


def _by_lower_case(combinations: list[tuple[str | None]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for (host,) in combinations:
        if host is not None:
            found.setdefault(host.lower(), []).append(host)
    return found
