"""Compute hosts and instances as rows of the model, and the reader of these."""

import datetime
from collections.abc import Sequence
from typing import Any, Final

from scheduler.db.cells import CellHealth
from scheduler.db.fleet import FleetChanges
from tests.simulation.patches import EPOCH, utc
from tests.simulation.server import Row, Server

NODES, INSTANCES, SERVICES = "nodes", "instances", "services"
TABLES: Final = ("claims", "claim_hosts", NODES, INSTANCES, SERVICES)
GB: Final = 1024
_NODE: Final = {
    **dict.fromkeys(("deleted", "vcpus_used", "local_gb_used"), 0),
    **dict.fromkeys(("deleted_at", "disk_available_least", "host_ip", "cpu_info", "stats")),
    **dict.fromkeys(("supported_instances", "metrics", "pci_stats", "numa_topology")),
    **dict.fromkeys(("ram_allocation_ratio", "disk_allocation_ratio"), 1.0),
    "vcpus": 64,
    "cpu_allocation_ratio": 16.0,
    "local_gb": 10_000,
    "free_disk_gb": 10_000,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 2012000,
}


class Fleet:
    """The rows of hosts h1, h2, … of *host_gb* each, and of the instances."""

    def __init__(self, server: Server, hosts: int, host_gb: int) -> None:
        self.server, self.host_gb = server, host_gb
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        self._of_host: dict[str, int] = {}
        #: Instances by uuid.
        self.ids: dict[str, int] = {}
        now = utc(EPOCH)
        stamps = {"created_at": now, "updated_at": now}
        nodes, services = {}, {}
        for number, host in enumerate(self.hosts, 1):
            names = {"uuid": f"node-{host}", "host": host, "hypervisor_hostname": host}
            ram = {"memory_mb": host_gb * GB, "memory_mb_used": 0, "free_ram_mb": host_gb * GB}
            nodes[number] = Row(id=number, **_NODE, **stamps, **names, **ram)
            flags = {"disabled": False, "forced_down": False, "last_seen_up": now, "deleted": 0}
            services[number] = Row(id=number, host=host, topic="compute", **flags, **stamps)
            self._of_host[host] = number
        server.write({NODES: nodes, SERVICES: services})

    def instance(self, uuid: str) -> Row:
        return self.server.tables[INSTANCES][self.ids[uuid]]

    def create(self, uuid: str, ram_gb: int) -> None:
        """The instance is known, and on no host yet."""
        number = self.ids[uuid] = self.server.next_id(INSTANCES)
        values = {"project_id": "p", "user_id": "u", "instance_type_id": 1, "host": None}
        values |= {"node": None, "deleted": 0, "deleted_at": None, "updated_at": None}
        values |= {"vm_state": "building", "task_state": "scheduling", "memory_gb": ram_gb}
        row = Row(id=number, uuid=uuid, created_at=self._now(), **values)
        self.server.write({INSTANCES: {number: row}})

    def change(self, uuid: str, **values: Any) -> None:
        row = self.instance(uuid).but(updated_at=self._now(), **values)
        self.server.write({INSTANCES: {row.id: row}})

    def delete(self, uuid: str) -> None:
        self.change(uuid, deleted=self.ids[uuid], deleted_at=self._now(), vm_state="deleted")

    def report(self, host: str) -> None:
        """Write what *host* has, as of its instances."""
        used = sum(row.memory_gb for row in self.present(host)) * GB
        node = self.server.tables[NODES][self._of_host[host]]
        ram = {"memory_mb_used": used, "free_ram_mb": node.memory_mb - used}
        self.server.write({NODES: {node.id: node.but(updated_at=self._now(), **ram)}})

    def reported_gb(self, host: str) -> int:
        """The memory in use, as *host* has reported it."""
        return int(self.server.tables[NODES][self._of_host[host]].memory_mb_used) // GB

    def present(self, host: str) -> list[Row]:
        rows = self.server.tables[INSTANCES].values()
        return [row for row in rows if row.host == host and not row.deleted]

    def _now(self) -> datetime.datetime:
        return utc(EPOCH + self.server.kernel.now)


class ModelReader:
    """The reader of the fleet: what was committed since the last read, in its order.

    A full read has the instances first, and the nodes as they are a moment later.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._seen: int | None = None

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        server, seen = self._server, None if full else self._seen
        self._seen = None

        def ask(_one: Any) -> tuple[int, list[Row], list[Row], list[Row]]:
            tables, since = server.tables, seen or 0
            found = [r for r in tables[INSTANCES].values() if r.seq > since]
            homes = {row.host for row in found}
            nodes = [r for r in tables[NODES].values() if r.seq > since or r.host in homes]
            return server.seq, found, nodes, list(tables[SERVICES].values())

        latest, instances, nodes, services = server.execute(ask, kind="read")
        if seen is None:
            nodes = server.execute(lambda _one: list(server.tables[NODES].values()))
        self._seen = latest
        known = services if seen is None else None
        return [FleetChanges(seen is None, nodes, instances, known)]

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """Nothing: no filter asks for heartbeats."""
        del now
        return ()

    def cell_health(self) -> Sequence[CellHealth]:
        """No cells."""
        return ()

    def read_more(self, conf: Any) -> None:
        """Nothing more."""
