"""The fleet in columns: one row per (host, node), one array per attribute that is read often.

Rows are added, updated in place and removed without rebuilding anything else.  The table does no
I/O and knows no clock; whoever changes it holds the worker's decision lock.
"""

import copy
import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from oslo_log import log as logging

from scheduler import errors
from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER, Combinations, DocumentPool

LOG = logging.getLogger(__name__)

FIRST_CAPACITY = 64
_NODES_NAMED = 10
_COPIED = (
    *("rows", "keys", "row_of_node", "services", "last_seen", "capabilities", "host_of_instance"),
    *("reserved_hosts", "cells", "_free", "_service_versions"),
)
#: Per row the table's version of its last change, and of the last host that came or went.
_VERSIONS = ("changed_at", "given_at")
_INTEGERS = frozenset(columns.INT_COLUMNS)
_NO_SERVICE: Mapping[str, Any] = MappingProxyType({})
Key = tuple[str, str]


class HostTable:
    """Hosts, services, instances, and the order of candidates (by compute-node id).

    There is one array per numeric column, and one of numbers in a pool per text or document.
    ``version`` counts the changes but for heartbeats.  Every change goes through a method.
    """

    #: By row the names of what has changed since somebody took them; None where nobody does.
    changes: defaultdict[int, set[str]] | None = None

    def __init__(self) -> None:
        self.pools = {
            name: DocumentPool(parse, functools.partial(self._complain, name))
            for name, parse in columns.POOL_PARSERS.items()
        }
        self.version = 0
        #: One more than the highest row number there may be.
        self.capacity = 0
        self.rows: dict[Key, int] = {}
        self.keys: dict[int, Key] = {}
        self.rows_of_host: dict[str, list[int]] = {}
        self.row_of_node: dict[int, int] = {}
        self.services: dict[str, Mapping[str, Any]] = {}
        #: When each service was last heard from, seconds since the epoch.
        self.last_seen: dict[str, float] = {}
        #: Number of services by version; those that are forced down are left out, as in Nova.
        self._service_versions: Counter[int] = Counter()
        self.aggregates_of_host: Mapping[str, tuple[Any, ...]] = {}
        self.instances: dict[str, dict[str, Any]] = {}
        #: Reports of compute nodes of Havana's kind about themselves, besides their row.
        self.capabilities: dict[tuple[str, str | None], Mapping[str, Any]] = {}
        self.host_of_instance: dict[str, str] = {}
        #: By instance the hosts with a reservation for it, which it may still have to move to.
        self.reserved_hosts: dict[str, Set[str]] = {}
        #: The cells that the fleet is divided into, and whether each is disabled; may be empty.
        self.cells: dict[str, bool] = {}
        #: Ids of compute nodes that lack host, name, uuid or a number, and so have no row here.
        self.incomplete: set[int] = set()
        self._order: np.ndarray | None = None
        self._is_dense = True
        self._combinations: dict[tuple[str, ...], Combinations] = {}
        self._free: list[int] = []
        self._used = 0
        numbers = dict.fromkeys((*self.pools, *_VERSIONS), np.int64)
        kinds = {**columns.COLUMN_TYPES, **numbers}
        self._arrays: dict[str, np.ndarray] = {
            name: np.zeros(0, dtype=kind) for name, kind in kinds.items()
        }
        self._read_only: dict[str, np.ndarray] = {}
        self._grow(FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self.rows)

    def copy(self) -> Self:
        """A table of the same content that changes on its own.

        A copy does not complain of documents that cannot be read: this table does.
        """
        twin = copy.copy(self)
        for name in _COPIED:
            setattr(twin, name, copy.copy(getattr(self, name)))
        twin.rows_of_host = {host: list(rows) for host, rows in self.rows_of_host.items()}
        twin.instances = {host: dict(several) for host, several in self.instances.items()}
        twin.pools = {name: pool.copy() for name, pool in self.pools.items()}
        twin._combinations, twin.changes = {}, None
        twin._arrays = {name: array.copy() for name, array in self._arrays.items()}
        twin._show_read_only()
        return twin

    # --- reading -------------------------------------------------------------------------

    def column(self, name: str) -> np.ndarray:
        """Per row its value of a numeric column, or the number of its content in a pool."""
        return self._read_only[name]

    def value(self, row: int, name: str) -> Any:
        """One row's value of a numeric, text or document (parsed) column."""
        number = self._read_only[name].item(row)
        pool = self.pools.get(name)
        if pool is not None:
            return pool.parsed(number)
        return int(number) if name in _INTEGERS else number

    def content(self, row: int, name: str) -> Any:
        return self.pools[name].content(self._arrays[name].item(row))

    def combinations(self, names: tuple[str, ...]) -> tuple[DocumentPool, np.ndarray]:
        """Pool and per row number of the distinct combinations of the values *names*.

        Of documents a combination holds the number.  They are kept up from the first time on.
        """
        known = self._combinations.get(names)
        if known is None:
            known = self._combinations[names] = Combinations(
                lambda row: tuple([self._read_only[name].item(row) for name in names])
            )
        if known.stale or len(known.numbers) < self.capacity:
            known.refresh(self.capacity)
        return known.pool, known.numbers

    def parsed_values(self, names: Sequence[str], combination: Sequence[Any]) -> tuple[Any, ...]:
        """The values *names* of a combination, documents parsed."""
        return tuple(
            self.pools[name].parsed(value) if name in self.pools else value
            for name, value in zip(names, combination, strict=True)
        )

    def service(self, row: int) -> Mapping[str, Any]:
        return self.services.get(self.value(row, "host"), _NO_SERVICE)

    @property
    def lowest_service_version(self) -> int:
        """The version of the oldest service; 0 without any."""
        return min((version for version, n in self._service_versions.items() if n), default=0)

    @property
    def order(self) -> np.ndarray:
        """Row numbers of every host that has a service record, by compute-node id."""
        if self._order is None:
            rows = np.flatnonzero(self._arrays["has_service"])
            order = rows[np.argsort(self._arrays["node_id"][rows], kind="stable")]
            self._is_dense = bool((order == np.arange(len(order))).all())
            self._order = order
        return self._order

    @property
    def is_dense(self) -> bool:
        """True when ``order`` is all row numbers from 0 on, so that slices of columns do."""
        return len(self.order) > 0 and self._is_dense

    def known_hosts(self) -> Set[str]:
        """Hosts of which anything is known: a compute node, a service, an instance."""
        return self.rows_of_host.keys() | self.services.keys() | self.instances.keys()

    def row_numbers(self, hosts: Iterable[str]) -> list[int]:
        """Rows of all nodes of the *hosts* named (exact case); unknown names are left out."""
        return [row for host in hosts for row in self.rows_of_host.get(host, ())]

    def rows_showing_instances(self, hosts: Iterable[str]) -> list[int]:
        """Rows of the *hosts* named, except the bare-metal ones: those show no instances."""
        bare_metal = self._arrays["bare_metal"]
        return [row for row in self.row_numbers(hosts) if not bare_metal[row]]

    def spellings(self, names: Iterable[str]) -> list[str]:
        by_lower = self.pools["host"].derived("spellings", _by_lower_case)
        return [host for name in names for host in by_lower.get(name, ())]

    # --- changing ------------------------------------------------------------------------

    def put(self, key: Key, values: Mapping[str, Any]) -> int:
        """Add or update the row of *key* with column, text and document *values*."""
        row = self.rows.get(key)
        if row is None:
            row = self._add(key, values)
        node_id_before = self.value(row, "node_id")
        self.update(row, values)
        node_id = self.value(row, "node_id")
        if self.row_of_node.get(node_id) != row:
            self.row_of_node.pop(node_id_before, None)
            self.row_of_node[node_id] = row
            self._order = None
        return row

    def _add(self, key: Key, values: Mapping[str, Any]) -> int:
        host, node = key
        # Hosts that come have higher ids than all others: behind these they are in order.
        if len(self._free) > max(len(self.rows), FIRST_CAPACITY):
            row = self._free.pop()
        else:
            if self._used == self.capacity:
                self._grow(self.capacity * 2)
            row, self._used = self._used, self._used + 1
        aggregates = self._aggregates_content(host)
        first = {**values, "host": host, "nodename": node, "aggregates": aggregates}
        for name, array in self._arrays.items():
            if name in self.pools:
                array[row] = self.pools[name].acquire(first.get(name))
            else:
                array[row] = NEVER if name in ("updated_at", "service_last_seen") else 0
        if host in self.services:
            self._arrays["has_service"][row] = True
            self._copy_service(row, host)
        self._note((row,), is_other=True)
        self.rows[key], self.keys[row] = row, key
        self.rows_of_host.setdefault(host, []).append(row)
        self._order = None
        return row

    def remove(self, key: Key) -> None:
        """Take the row of *key* out; its number may serve another host later."""
        row = self.rows.pop(key)
        del self.keys[row]
        self.row_of_node.pop(self.value(row, "node_id"), None)
        host_rows = self.rows_of_host[key[0]]
        host_rows.remove(row)
        if not host_rows:
            del self.rows_of_host[key[0]]
        for name, pool in self.pools.items():
            pool.release(self._arrays[name].item(row))
            self._arrays[name][row] = -1
        self._free.append(row)
        self._arrays["has_service"][row] = False
        self._order = None
        self._note((row,), is_other=True)

    def update(self, row: int, values: Mapping[str, Any]) -> None:
        """Set column, text and document *values* of one row; its identity stays."""
        changed = []
        for name, value in values.items():
            array, pool = self._arrays[name], self.pools.get(name)
            new = value if pool is None else pool.acquire(value, instead_of=array.item(row))
            if array[row] != new:
                array[row] = new
                changed.append(name)
        if changed:
            self._note((row,), changed)

    def add(self, rows: Sequence[int], amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add to the numbers of *rows*, as often as each is among them, or (-1) take away."""
        for name, amount in amounts.items():
            if len(rows) == 1:
                self._arrays[name][rows[0]] += sign * amount
            else:
                np.add.at(self._arrays[name], rows, sign * amount)
        self._note(rows, amounts)

    def _note(
        self, rows: Sequence[int], names: Iterable[str] | None = None, *, is_other: bool = False
    ) -> None:
        """The values *names* (None: any) of *rows* have changed; *is_other*: so has the host."""
        self.version += 1
        where = rows[0] if len(rows) == 1 else rows
        self._arrays["changed_at"][where] = self.version
        if is_other:
            self._arrays["given_at"][where] = self.version
        for combined, known in self._combinations.items():
            if names is None or any(name in combined for name in names):
                known.stale.update(rows)
        if self.changes is not None:
            for row in rows:
                self.changes[row].update(self._arrays if names is None else names)

    def set_service(self, host: str, record: Mapping[str, Any] | None, last_seen: float) -> None:
        """Set or (None) drop the service record of *host*; *last_seen* in epoch seconds."""
        rows = self.row_numbers((host,))
        if rows and (record is None) == (host in self.services):
            self._order = None
            self._arrays["has_service"][rows] = record is not None
            self._note(rows)
        for known, change in ((self.services.get(host), -1), (record, 1)):
            if known is not None and not known.get("forced_down"):
                self._service_versions[known.get("version") or 0] += change
        if record is None:
            self.services.pop(host, None)
            self.last_seen.pop(host, None)
            return
        self.services[host] = MappingProxyType(record)
        self.last_seen[host] = last_seen
        for row in rows:
            self._copy_service(row, host)

    def _copy_service(self, row: int, host: str) -> None:
        record = self.services[host]
        flags = {
            "service_disabled": bool(record.get("disabled")),
            "service_forced_down": bool(record.get("forced_down")),
        }
        self.update(row, flags)
        self._arrays["service_last_seen"][row] = self.last_seen[host]
        if self.changes is not None:
            self.changes[row].add("service_last_seen")

    def set_aggregates(self, aggregates_of_host: Mapping[str, tuple[Any, ...]]) -> None:
        """Set every host's aggregates; hosts not named are in none."""
        self.aggregates_of_host = aggregates_of_host
        for host, rows in self.rows_of_host.items():
            for row in rows:
                self.update(row, {"aggregates": self._aggregates_content(host)})

    def _aggregates_content(self, host: str) -> tuple[Any, ...]:
        """A hashable form of the aggregates of *host*, in id order."""
        return tuple(
            (each.id, each.uuid, each.name, tuple(sorted((each.metadata or {}).items())))
            for each in self.aggregates_of_host.get(host, ())
        )

    def put_instance(self, host: str, uuid: str, instance: Any) -> None:
        """Note that *instance* runs on *host*, and nowhere else."""
        if self.host_of_instance.get(uuid, host) != host:
            self.drop_instance(uuid)
        self.instances.setdefault(host, {})[uuid] = instance
        self.host_of_instance[uuid] = host
        self._note(self.rows_of_host.get(host, []), (columns.INSTANCES,))

    def drop_instance(self, uuid: str) -> None:
        host = self.host_of_instance.pop(uuid, None)
        if host is None:
            return
        instances = self.instances[host]
        del instances[uuid]
        if not instances:
            del self.instances[host]
        self._note(self.rows_of_host.get(host, []), (columns.INSTANCES,))

    def _grow(self, capacity: int) -> None:
        for name, old in self._arrays.items():
            filling = -1 if name in self.pools else 0
            more = np.full(capacity - self.capacity, filling, dtype=old.dtype)
            self._arrays[name] = np.append(old, more)
        self.capacity = capacity
        self._show_read_only()

    def _show_read_only(self) -> None:
        self._read_only = {name: array.view() for name, array in self._arrays.items()}
        for view in self._read_only.values():
            view.flags.writeable = False

    def _complain(self, name: str, number: int, error: errors.NovaException) -> None:
        rows = np.flatnonzero(self._arrays[name] == number)[:_NODES_NAMED].tolist()
        nodes = ", ".join(str(self.value(row, "nodename")) for row in rows)
        LOG.warning(
            "%s of compute node %s cannot be read and counts as none: %s", name, nodes, error
        )


def _by_lower_case(hosts: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for host in hosts:
        found.setdefault(host.lower(), []).append(host)
    return found
