"""Hosts, instances and claims as rows, with several schedulers on them.

``Fleet`` plays the compute hosts, in plain SQL: a host counts an instance and says so in one
transaction, as the arithmetic under test must be right whatever computes do around it.
"""

import datetime
import itertools
import time
import uuid
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from conductor_stub.compute import registration
from scheduler import drivers
from scheduler.claims import loading
from scheduler.claims.backend import Claiming, Decided, Request, Result
from scheduler.db import claims as claim_rows
from scheduler.db import compute_nodes, services, tables
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.drivers.loading import load_host_manager
from scheduler.engine.record import DecisionRecord
from tests.builders import a_conf, a_request
from tests.unit.hosts.reading import Clock
from tests.world import fleet as world_fleet

SETTINGS = {"db_retry_interval": 0, "db_max_retry_interval": 0, "max_retries": 1}
GB = 1024


class Context:
    """As much of a request's context as a driver looks at."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id


class Fleet:
    """Hosts h1, h2, … of *ram_mb* each, no overcommit, in *database*."""

    def __init__(self, database, clock, hosts=3, ram_mb=4 * GB):
        self.database = database
        self.clock = clock
        self.ram_mb = ram_mb
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        with database.write() as conn:
            registration.put_services(conn, self.hosts, 74)
            ids = conn.execute(sa.select(tables.services.c.id)).scalars().all()
            services.heartbeat(conn, ids, self.now())
            has = {"memory_mb": ram_mb, "ram_allocation_ratio": 1.0, **self._usage(0, 0)}
            rows = [{**world_fleet.node(host), **has} for host in self.hosts]
            registration.put_nodes(conn, rows)

    def now(self) -> datetime.datetime:
        now = datetime.datetime.fromtimestamp(self.clock(), datetime.UTC)
        return now.replace(tzinfo=None, microsecond=0)

    def _usage(self, used_mb: int, count: int) -> dict[str, Any]:
        return {
            "vcpus_used": count,
            "memory_mb_used": used_mb,
            "free_ram_mb": self.ram_mb - used_mb,
            "stats": {"num_instances": str(count), "io_workload": "0"},
        }

    def wait_for_host(self, name: str, ram_mb: int) -> None:
        """The instance is known, and on no host yet."""
        values = {"uuid": name, "memory_mb": ram_mb, "deleted": 0, "created_at": self.now()}
        values |= {"vm_state": "building", "task_state": "scheduling"}
        with self.database.write() as conn:
            conn.execute(tables.instances.insert().values(values))

    def fill(self, host: str) -> None:
        """Somebody else takes all there is on *host*."""
        name = a_name()
        self.wait_for_host(name, self.ram_mb)
        self.arrive(name, host)

    def arrive(self, name: str, host: str, *, state: str = "active") -> None:
        """The instance is counted on *host*, whose report says so."""
        self.change(name, host, host=host, node=host, vm_state=state, task_state=None)

    def delete(self, name: str, host: str | None = None) -> None:
        values = {"deleted": tables.instances.c.id, "deleted_at": self.now(), "vm_state": "deleted"}
        self.change(name, host, **values)

    def fail(self, name: str) -> None:
        """The instance could not be built anywhere."""
        self.change(name, None, vm_state="error", task_state=None)

    def change(self, name: str, report_of: str | None, **values: Any) -> None:
        """Write *values* about an instance, and what a host reports then."""
        table = tables.instances
        with self.database.write() as conn:
            values["updated_at"] = self.now()
            conn.execute(table.update().where(table.c.uuid == name).values(**values))
            if report_of is not None:
                self._report(conn, report_of, self.now())

    def report_later(self, host: str) -> None:
        """The host reports what it has, as it does every minute."""
        with self.database.write() as conn:
            self._report(conn, host, self.now() + datetime.timedelta(minutes=1))

    def _report(self, conn: sa.Connection, host: str, at: datetime.datetime) -> None:
        present = self._present(conn)[host]
        (node,) = [each for each in compute_nodes.list_all(conn) if each.host == host]
        usage = self._usage(sum(present.values()), len(present))
        registration.update_node(conn, node.id, usage, at)

    def _present(self, conn: sa.Connection) -> dict[str, dict[str, int]]:
        table = tables.instances
        found: dict[str, dict[str, int]] = {host: {} for host in self.hosts}
        query = sa.select(table.c.uuid, table.c.host, table.c.memory_mb).where(
            table.c.deleted == 0, table.c.host.is_not(None)
        )
        for name, host, ram_mb in conn.execute(query):
            found[host][name] = ram_mb
        return found

    def promised_and_present(self) -> dict[str, dict[str, int]]:
        """Per host the memory of every instance that is there or may come."""
        table = tables.instances
        over = sa.select(table.c.uuid).where(
            sa.or_(table.c.deleted != 0, table.c.vm_state == "error")
        )
        with self.database.read() as conn:
            found = self._present(conn)
            ended = set(conn.execute(over).scalars())
            for row in claim_rows.list_all(conn):
                if row.consumer_uuid not in ended:
                    found[row.host][row.consumer_uuid] = row.memory_mb
        return found

    def check(self) -> None:
        """No host is promised beyond what it has."""
        for host, instances in self.promised_and_present().items():
            assert sum(instances.values()) <= self.ram_mb, (host, instances)

    def claims(self) -> dict[str, str]:
        """Host of every open claim, by consumer."""
        with self.database.read() as conn:
            return {row.consumer_uuid: row.host for row in claim_rows.list_all(conn)}


@dataclass(frozen=True)
class Pending:
    """A decision that is still to be claimed."""

    claiming: Claiming
    decided: Decided

    @property
    def hosts(self) -> list[str]:
        return [first.service_host for first, *_rest in self.decided.selections]

    def book(self) -> Result:
        return self.claiming.book(self.decided)


class Worker:
    """One scheduler worker with claims in *database*."""

    def __init__(self, database, clock=None, driver="filter_scheduler", filters=("RamFilter",)):
        self.database = Database(database.url, settings=SETTINGS)
        conf = a_conf(
            enabled_filters=list(filters), scheduler__claims="database", scheduler__driver=driver
        )
        cells = CellsReader(conf, Databases(self.database))
        reservations = loading.reservations_from_conf(conf, self.database)
        self.manager = load_host_manager(conf, cells, reservations)
        self.manager.clock = self.manager.reservations.clock = clock or Clock()
        claims = loading.claims_from_conf(conf, self.manager, drivers.called_class(conf))
        self.driver = drivers.load(conf, self.manager, claims=claims)
        self.driver.pause = lambda _seconds: None
        claims.pause = getattr(self.manager.clock, "pass_by", time.sleep)
        self.manager.refresh()
        self.driver.claims.prepare()
        self.manager.refresh()

    def select(
        self,
        request_id: str,
        ram_mb: int,
        *names: str,
        ignore_hosts: list[str] | None = None,
        **how: Any,
    ) -> list[list[Any]]:
        spec = a_request(flavor={"memory_mb": ram_mb, "root_gb": 0}, ignore_hosts=ignore_hosts)
        answer: list[list[Any]] = self.driver.select_destinations(
            Context(request_id), spec, list(names), **how
        )
        return answer

    def hosts(self, request_id: str, ram_mb: int, *names: str, **how: Any) -> list[str]:
        answer = self.select(request_id, ram_mb, *names, **how)
        return [first.service_host for first, *_rest in answer]

    def decide(self, request_id: str, ram_mb: int, *names: str, **how: Any) -> Pending:
        """A request that is taken apart: decided now on what is known, claimed later."""
        spec = a_request(flavor={"memory_mb": ram_mb, "root_gb": 0}, **how)
        record = DecisionRecord(request_id, names, len(names), seed=0)
        request = Request(Context(request_id), spec, names, with_alternates=False)
        with self.driver.claims.open(request) as claiming:
            return Pending(claiming, self.driver.decide(request, record))

    def free_mb(self) -> dict[str, int]:
        table = self.manager.table
        return {
            host: int(table.value(row, "free_ram_mb")) for (host, _node), row in table.rows.items()
        }

    def close(self) -> None:
        self.database.dispose()


_numbers = itertools.count(1)


def a_name() -> str:
    return str(uuid.UUID(int=next(_numbers), version=4))
