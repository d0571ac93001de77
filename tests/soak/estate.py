"""The compute hosts and servers as rows, and everything that happens to them.

Hosts report, come under new names, go, are switched off and on; servers arrive, move, are deleted
and, later, archived; some never arrive; aggregates change.
"""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from benchmarks import fleet, install
from conductor_stub.compute import registration
from scheduler import objects
from scheduler.db import aggregates as aggregate_rows
from scheduler.db import tables
from scheduler.db.database import Database

HEARTBEAT_SECONDS: Final = 15.0
ARCHIVE_SECONDS: Final = 120.0
#: Of so many servers one never shows up where it was to go.
ONE_LOST_IN: Final = 50
#: Of so many steps one sees a host come and another go.
CHANGE_EVERY: Final = 10
MOVED_AT_ONCE: Final = 3
NODES: Final = tables.compute_nodes
SERVICES: Final = tables.services
INSTANCES: Final = tables.instances
_AGGREGATE: Final = 4


@dataclass(slots=True)
class Host:
    """One compute host: its size, what was there from the begin, and what its servers take."""

    number: int
    name: str
    row: Mapping[str, Any]
    memory_mb: int = 0
    disk_gb: int = 0
    vcpus: int = 0
    servers: int = 0

    def take(self, server: Server, sign: int) -> None:
        """Count a server in (1) or out (-1)."""
        self.memory_mb += sign * server.memory_mb
        self.disk_gb += sign * server.disk_gb
        self.vcpus += sign * server.vcpus
        self.servers += sign


@dataclass(slots=True)
class Server:
    uuid: str
    host: str
    memory_mb: int
    disk_gb: int
    vcpus: int
    project: str | None


class Estate:
    """The rows in *database*; *clock* gives seconds since the epoch."""

    def __init__(
        self,
        database: Database,
        plan: fleet.FleetPlan,
        servers: int,
        rng: random.Random,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._rng = rng
        self._clock = clock
        self._most = servers
        now = datetime.datetime.fromtimestamp(clock(), datetime.UTC)
        self._hosts = {
            row["host"]: Host(row["id"], row["host"], row) for row in fleet.compute_nodes(plan, now)
        }
        self._next_host = len(self._hosts)
        self._arriving: list[Server] = []
        self._servers: deque[Server] = deque()
        self._changed: set[str] = set()
        self._off: deque[str] = deque()
        self._beat_at = self._archived_at = clock()
        self._steps = 0
        self.counts: Counter[str] = Counter()

    @property
    def hosts(self) -> Sequence[str]:
        return list(self._hosts)

    @property
    def servers(self) -> Sequence[str]:
        return [self._servers[place].uuid for place in range(min(100, len(self._servers)))]

    def instances_on(self, host: str) -> objects.InstanceList:
        """The servers on *host* that came there during the soak."""
        there = [each.uuid for each in self._servers if each.host == host]
        return objects.InstanceList(
            objects=[objects.Instance(uuid=each, host=host, node=host) for each in there]
        )

    def arrive(self, spec: objects.RequestSpec, uuids: Sequence[str], hosts: Sequence[str]) -> None:
        """Servers are to be built where a scheduler said; not all of them will be."""
        flavor = spec.flavor
        for own, host in zip(uuids, hosts, strict=True):
            if self._rng.randrange(ONE_LOST_IN) == 0 or host not in self._hosts:
                self.counts["servers lost on the way"] += 1
                continue
            self._arriving.append(
                Server(own, host, flavor.memory_mb, flavor.root_gb, flavor.vcpus, spec.project_id)
            )

    def step(self) -> None:
        """Write what has happened since the last step."""
        self._steps += 1
        with self._database.write() as connection:
            # Statements of all lengths, that the scheduler's cache has nothing to do with.
            connection = connection.execution_options(compiled_cache=None)
            self._build(connection)
            self._move(connection)
            self._delete(connection)
            if self._steps % CHANGE_EVERY == 0:
                self._replace_a_host(connection)
                self._switch(connection)
                self._change_aggregates(connection)
            self._report(connection)
            self._beat(connection)
            self._archive(connection)

    @property
    def _now(self) -> datetime.datetime:
        now = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        return now.replace(tzinfo=None, microsecond=0)

    # --- servers -------------------------------------------------------------------------

    def _build(self, connection: Connection) -> None:
        arriving = [each for each in self._arriving if each.host in self._hosts]
        self._arriving = []
        rows = [
            {
                "uuid": each.uuid,
                "host": each.host,
                "node": each.host,
                "project_id": each.project,
                "vm_state": "active",
                "memory_mb": each.memory_mb,
                "vcpus": each.vcpus,
                "root_gb": each.disk_gb,
                "ephemeral_gb": 0,
                "created_at": self._now,
                "updated_at": self._now,
                "deleted": 0,
            }
            for each in arriving
        ]
        for begin in range(0, len(rows), install.ROWS_AT_ONCE):
            connection.execute(INSTANCES.insert(), rows[begin : begin + install.ROWS_AT_ONCE])
        for each in arriving:
            self._take(each, 1)
        self._servers.extend(arriving)
        self.counts["servers built"] += len(arriving)

    def _take(self, server: Server, sign: int) -> None:
        self._hosts[server.host].take(server, sign)
        self._changed.add(server.host)

    def _move(self, connection: Connection) -> None:
        for _number in range(min(MOVED_AT_ONCE, len(self._servers))):
            server = self._servers[self._rng.randrange(len(self._servers))]
            self._take(server, -1)
            server.host = self._rng.choice(list(self._hosts))
            self._take(server, 1)
            values = {"host": server.host, "node": server.host, "updated_at": self._now}
            connection.execute(
                INSTANCES.update().where(INSTANCES.c.uuid == server.uuid).values(values)
            )
            self.counts["servers moved"] += 1

    def _delete(self, connection: Connection) -> None:
        """The oldest go when there are too many, and with them a few of any age."""
        gone = [self._servers.popleft() for _n in range(max(0, len(self._servers) - self._most))]
        for server in gone:
            self._take(server, -1)
        self._mark_deleted(connection, [each.uuid for each in gone])

    def _mark_deleted(self, connection: Connection, uuids: Sequence[str]) -> None:
        values = {"deleted": INSTANCES.c.id, "deleted_at": self._now, "vm_state": "deleted"}
        for begin in range(0, len(uuids), install.ROWS_AT_ONCE):
            some = uuids[begin : begin + install.ROWS_AT_ONCE]
            connection.execute(INSTANCES.update().where(INSTANCES.c.uuid.in_(some)).values(values))
        self.counts["servers deleted"] += len(uuids)

    def _archive(self, connection: Connection) -> None:
        """What was deleted a while ago goes away for good, as an operator's archiver does it."""
        if self._clock() - self._archived_at < ARCHIVE_SECONDS:
            return
        before = self._now - datetime.timedelta(seconds=ARCHIVE_SECONDS)
        self._archived_at = self._clock()
        for table in (INSTANCES, NODES, SERVICES):
            connection.execute(
                table.delete().where(table.c.deleted != 0, table.c.deleted_at < before)
            )

    # --- hosts ---------------------------------------------------------------------------

    def _replace_a_host(self, connection: Connection) -> None:
        """One host goes with its servers, another comes under a name that was never heard."""
        old = self._hosts[self._rng.choice(list(self._hosts))]
        del self._hosts[old.name]
        self._changed.discard(old.name)
        there = [each for each in self._servers if each.host == old.name]
        self._servers = deque(each for each in self._servers if each.host != old.name)
        self._mark_deleted(connection, [each.uuid for each in there])
        for table in (NODES, SERVICES):
            values = {"deleted": table.c.id, "deleted_at": self._now}
            connection.execute(
                table.update().where(table.c.host == old.name, table.c.deleted == 0).values(values)
            )
        hosts = tables.aggregate_hosts
        connection.execute(hosts.delete().where(hosts.c.host == old.name))
        self._next_host += 1
        name = f"compute-{self._next_host:06d}"
        self._add_host(connection, name, old.row)
        if name_of_zone := self._next_host % len(fleet.ZONES):
            aggregate_rows.add_host(connection, name_of_zone, name)
        self.counts["hosts replaced"] += 1

    def _add_host(self, connection: Connection, name: str, like: Mapping[str, Any]) -> None:
        fresh = {
            **{key: value for key, value in like.items() if key in NODES.c and key != "id"},
            "host": name,
            "hypervisor_hostname": name,
            "uuid": str(uuid.UUID(int=self._rng.getrandbits(128), version=4)),
            "deleted": 0,
            "created_at": self._now,
            "updated_at": self._now,
        }
        key: Any = connection.execute(NODES.insert().values(fresh)).inserted_primary_key
        registration.put_services(connection, [name], 66)
        here = SERVICES.c.host == name
        connection.execute(SERVICES.update().where(here).values(last_seen_up=self._now))
        self._hosts[name] = Host(int(key[0]), name, like)

    def _switch(self, connection: Connection) -> None:
        """A host is switched off or forced down; the one that was so for longest works again."""
        name = self._rng.choice(list(self._hosts))
        column = self._rng.choice((SERVICES.c.disabled, SERVICES.c.forced_down))
        self._set(connection, name, {column.name: True})
        self._off.append(name)
        if len(self._off) > 5:
            self._set(connection, self._off.popleft(), {"disabled": False, "forced_down": False})
        self.counts["hosts switched"] += 1

    def _set(self, connection: Connection, name: str, values: Mapping[str, Any]) -> None:
        connection.execute(
            SERVICES.update()
            .where(SERVICES.c.host == name, SERVICES.c.deleted == 0)
            .values({**values, "updated_at": self._now})
        )

    def _report(self, connection: Connection) -> None:
        """Hosts with something new to say say it; some just report."""
        some = self._rng.sample(list(self._hosts), 5)
        names = dict.fromkeys((*self._changed, *some))
        hosts = [self._hosts[name] for name in names if name in self._hosts]
        self._changed.clear()
        usages = [{"which": host.number, **self._usage(host)} for host in hosts]
        report = NODES.update().where(NODES.c.id == sa.bindparam("which"))
        connection.execute(report.values(updated_at=self._now), usages)
        self.counts["reports"] += len(hosts)

    def _usage(self, host: Host) -> dict[str, Any]:
        row = host.row
        disk = row["free_disk_gb"] - host.disk_gb
        return {
            "memory_mb_used": row["memory_mb_used"] + host.memory_mb,
            "free_ram_mb": row["free_ram_mb"] - host.memory_mb,
            "local_gb_used": row["local_gb_used"] + host.disk_gb,
            "free_disk_gb": disk,
            "disk_available_least": disk,
            "vcpus_used": row["vcpus_used"] + host.vcpus,
            "running_vms": row["running_vms"] + host.servers,
            "stats": json.dumps(
                {"num_instances": str(host.servers), "io_workload": "0", "told": str(self._steps)}
            ),
        }

    def _beat(self, connection: Connection) -> None:
        if self._clock() - self._beat_at < HEARTBEAT_SECONDS:
            return
        self._beat_at = self._clock()
        connection.execute(
            SERVICES.update()
            .where(SERVICES.c.deleted == 0, SERVICES.c.binary == "nova-compute")
            .values(
                updated_at=self._now,
                last_seen_up=self._now,
                report_count=SERVICES.c.report_count + 1,
            )
        )

    # --- aggregates ----------------------------------------------------------------------

    def _change_aggregates(self, connection: Connection) -> None:
        """One gets other metadata, one comes, and the one that came last time goes."""
        metadata = {"told": str(self._steps), "ssd": "true"}
        aggregate_rows.set_metadata(connection, _AGGREGATE, metadata)
        for each in aggregate_rows.list_all(connection):
            if each.name.startswith("passing-"):
                aggregate_rows.delete(connection, each.id)
        some = self._rng.sample(list(self._hosts), 10)
        aggregate_rows.create(
            connection, f"passing-{self._steps}", {f"own-{self._steps}": "1"}, some
        )
        self.counts["aggregates changed"] += 1
