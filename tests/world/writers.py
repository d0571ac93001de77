"""Random writers on several connections, seeded.

Every writer has a clock of its own, stamps what it writes, and commits at once or much later: so
changes become visible in another order than their stamps say, and several within one second.
"""

import contextlib
import datetime
import random
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exception

from scheduler.db import tables
from scheduler.db.database import Database

NODES, SERVICES, INSTANCES = tables.compute_nodes, tables.services, tables.instances
START = 1_795_000_000.0
HOSTS = 6
#: How far the clocks of the writers are off, seconds.  A row is always written by the same one.
SKEWS = (0.0, 0.0, -0.3, -20.0, 5.0)
HELD_SECONDS = 25.0
#: InnoDB also locks gaps between rows, which the test does not foresee: it goes on without.
IMPATIENT = "SET SESSION innodb_lock_wait_timeout = 1"

Step = Callable[[sa.Connection], Any]


class Transaction:
    """Statements that become visible together at *commits_at*.

    SQLite has one writer at a time: there the statements are carried out at the end, as stamped.
    """

    def __init__(self, database: Database, commits_at: float) -> None:
        self.commits_at = commits_at
        self.locked: set[tuple[str, Any]] = set()
        self._database = database
        self._steps: list[Step] = []
        self._stack = contextlib.ExitStack()
        self._connection: sa.Connection | None = None
        if database.dialect_name != "sqlite":
            self._connection = self._stack.enter_context(database.write())
        if database.dialect_name == "mysql":
            self.do(lambda connection: connection.exec_driver_sql(IMPATIENT))

    def do(self, step: Step) -> None:
        if self._connection is None:
            self._steps.append(step)
        else:
            try:
                step(self._connection)
            except BaseException as error:
                self._stack.__exit__(type(error), error, error.__traceback__)
                raise

    def commit(self) -> None:
        if self._connection is None:
            with self._database.write() as connection:
                for step in self._steps:
                    step(connection)
        self._stack.close()


class Writers:
    """Random changes of every kind; *counted*: those that only triggers show, too."""

    def __init__(self, database: Database, seed: int, *, counted: bool) -> None:
        self.database = database
        self.random = random.Random(seed)
        self.counted = counted
        self.time = START
        self.open: list[Transaction] = []
        self.stamped: dict[tuple[str, int], set[datetime.datetime]] = {}
        self.held_share = 0.0
        self._names = 0
        self.hosts = [f"h{number}" for number in range(HOSTS)]
        nodes, services, instances = (t.c.deleted == 0 for t in (NODES, SERVICES, INSTANCES))
        self.kinds: list[Callable[[], None]] = [
            *[self.on(NODES, self.report, nodes)] * 6,
            *[self.on(SERVICES, self.beat, services)] * 4,
            *[self.on(SERVICES, self.switch, services)] * 2,
            self.new_node,
            self.on(NODES, self.delete_node, nodes),
            self.on(NODES, self.undelete_node, ~nodes),
            self.on(NODES, self.rename_node, nodes),
            self.new_service,
            self.on(SERVICES, self.delete_service, services),
            self.on(SERVICES, self.vanish_service),
            *(self.new_aggregate, self.join, self.describe, self.drop_aggregate),
            self.on(tables.aggregate_hosts, self.leave),
            *[self.new_instance] * 2,
            *[self.on(INSTANCES, self.move_instance, instances)] * 2,
            self.on(INSTANCES, self.delete_instance, instances),
        ]
        if counted:
            self.kinds += [
                self.on(NODES, self.vanish_node),
                self.on(INSTANCES, self.vanish_instance),
                self.on(SERVICES, self.rename_service, services),
            ]

    def on(
        self, table: sa.Table, change: Callable[[Any], None], *criteria: Any
    ) -> Callable[[], None]:
        """Do *change* to a random row of *table*, if there is one."""

        def changed() -> None:
            if (row := self.pick(table, *criteria)) is not None:
                change(row)

        return changed

    # --- time ----------------------------------------------------------------------------

    def clock(self) -> float:
        return self.time

    def stamp(self, row_id: int) -> datetime.datetime:
        """Now, by the clock of whoever writes that row; sometimes without the fraction."""
        when = self.time + SKEWS[row_id % len(SKEWS)]
        if self.random.random() < 0.5:
            when = float(int(when))
        return datetime.datetime.fromtimestamp(when, datetime.UTC).replace(tzinfo=None)

    def fill(self) -> None:
        for host in self.hosts:
            for kind in (self.new_service, self.new_node):
                kind(host)
        for _ in range(3):
            self.new_aggregate()
            self.new_instance()
        self.held_share = 0.25

    def step(self) -> None:
        """Time passes, transactions end, others begin."""
        self.time += self.random.choice((0.0, 0.05, 0.3, 0.9, 2.0, 4.5))
        for each in [each for each in self.open if each.commits_at <= self.time]:
            self.open.remove(each)
            each.commit()
        for _ in range(self.random.randrange(4)):
            self.random.choice(self.kinds)()

    def commit_all(self) -> None:
        while self.open:
            self.open.pop().commit()

    def change(self, step: Step, *locks: tuple[str, Any], again: bool = False) -> None:
        """Carry *step* out in a transaction of its own, unless its rows are locked.

        What stamps a row *again* within a second is committed soon: full reads are for the rest.
        """
        if any(lock in each.locked for each in self.open for lock in locks):
            return
        held = self.random.random() < self.held_share and not again
        transaction = Transaction(self.database, self.time + self.random.uniform(0, HELD_SECONDS))
        transaction.locked.update(locks)
        try:
            transaction.do(step)
        except db_exception.DBDeadlock:
            return
        if held:
            self.open.append(transaction)
        else:
            transaction.commit()

    def pick(self, table: sa.Table, *criteria: Any) -> Any:
        """A random row as it is committed, which no open transaction has locked; or None."""
        with self.database.read() as connection:
            found = connection.execute(sa.select(table).where(*criteria).order_by(table.c.id)).all()
        locked = {lock for each in self.open for lock in each.locked}
        found = [row for row in found if (table.name, row.id) not in locked]
        return self.random.choice(found) if found else None

    def exists(self, table: sa.Table, *criteria: Any) -> bool:
        with self.database.read() as connection:
            return connection.execute(sa.select(table.c.id).where(*criteria)).first() is not None

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def set(self, table: sa.Table, row_id: int, *locks: Any, **values: Any) -> None:
        statement = table.update().where(table.c.id == row_id).values(**values)
        stamped = self.stamped.setdefault((table.name, row_id), set())
        stamps = {
            when.replace(microsecond=0)
            for when in values.values()
            if isinstance(when, datetime.datetime)
        }
        again = bool(stamps & stamped)
        stamped |= stamps
        lock = (table.name, row_id)
        self.change(lambda connection: connection.execute(statement), lock, *locks, again=again)

    def insert(self, table: sa.Table, *locks: Any, **values: Any) -> None:
        statement = table.insert().values(**values)
        self.change(lambda connection: connection.execute(statement), *locks)

    def vanish(self, table: sa.Table, row_id: int, *locks: Any) -> None:
        statement = table.delete().where(table.c.id == row_id)
        self.change(lambda connection: connection.execute(statement), (table.name, row_id), *locks)

    # --- compute nodes -------------------------------------------------------------------

    def numbers(self) -> dict[str, Any]:
        pick = self.random.randrange
        return {
            "free_ram_mb": pick(100000),
            "vcpus_used": pick(64),
            "memory_mb_used": pick(100000),
            "local_gb_used": pick(1000),
            "free_disk_gb": self.random.choice((None, pick(1000), pick(1000), pick(1000))),
            "stats": f'{{"num_instances": "{pick(9)}"}}',
            "pci_stats": self.random.choice((None, "[]", f'[{{"count": {pick(3)}}}]')),
            "numa_topology": self.random.choice((None, "", f'{{"cells": [], "x": {pick(9)}}}')),
            "cpu_info": self.random.choice(("", "a", "b")),
            "ram_allocation_ratio": self.random.choice((None, 0.0, 1.5)),
        }

    def new_node(self, host: str | None = None) -> None:
        node_id = int(self.name("")) + 1000
        self.insert(
            NODES,
            id=node_id,
            created_at=self.stamp(node_id),
            deleted=0,
            uuid=self.name("node"),
            host=host or self.random.choice(self.hosts),
            hypervisor_hostname=self.name("n"),
            vcpus=64,
            memory_mb=100000,
            local_gb=1000,
            hypervisor_type="QEMU",
            hypervisor_version=7,
            **self.numbers(),
        )

    def report(self, row: Any) -> None:
        values = self.numbers() if self.random.random() < 0.8 else {}
        for _ in range(self.random.choice((1, 1, 2))):
            self.set(NODES, row.id, updated_at=self.stamp(row.id), **values)
            values = {"free_ram_mb": self.random.randrange(100000)}

    def delete_node(self, row: Any) -> None:
        moved = {"updated_at": self.stamp(row.id)} if self.random.random() < 0.5 else {}
        when = self.stamp(row.id)
        self.set(NODES, row.id, deleted=row.id, deleted_at=when, **moved)

    def undelete_node(self, row: Any) -> None:
        when = self.stamp(row.id)
        self.set(NODES, row.id, deleted=0, deleted_at=None, updated_at=when)

    def vanish_node(self, row: Any) -> None:
        self.vanish(NODES, row.id, ("counter", "compute_nodes"))

    def rename_node(self, row: Any) -> None:
        new = self.random.choice(
            ({"hypervisor_hostname": self.name("n")}, {"host": self.random.choice(self.hosts)})
        )
        self.set(NODES, row.id, updated_at=self.stamp(row.id), **new)

    # --- services ------------------------------------------------------------------------

    def new_service(self, host: str | None = None) -> None:
        host = host or self.random.choice(self.hosts)
        table = SERVICES
        if self.exists(table, table.c.host == host, table.c.deleted == 0):
            return
        lock = ("services", host)
        if any(lock in each.locked for each in self.open):
            return
        service_id = int(self.name("")) + 1000
        self.insert(
            table,
            lock,
            ("counter", "services"),
            id=service_id,
            created_at=self.stamp(service_id),
            deleted=0,
            uuid=self.name("service"),
            host=host,
            binary="nova-compute",
            topic="compute",
            report_count=0,
            version=74,
            disabled=False,
            forced_down=False,
        )

    def beat(self, row: Any) -> None:
        when = self.stamp(row.id)
        count = row.report_count + 1
        self.set(SERVICES, row.id, report_count=count, last_seen_up=when, updated_at=when)

    def switch(self, row: Any) -> None:
        name = self.random.choice(("disabled", "forced_down"))
        changes: dict[str, Any] = {name: self.random.choice((True, False))}
        # A reason goes with a flag.
        changes["disabled_reason"] = self.name("reason") if changes[name] else None
        self.set(SERVICES, row.id, updated_at=self.stamp(row.id), **changes)

    def delete_service(self, row: Any) -> None:
        when, lock = self.stamp(row.id), ("services", row.host)
        counter = ("counter", "services")
        self.set(SERVICES, row.id, lock, counter, deleted=row.id, deleted_at=when)

    def vanish_service(self, row: Any) -> None:
        self.vanish(SERVICES, row.id, ("services", row.host), ("counter", "services"))

    def rename_service(self, row: Any) -> None:
        locks = (("services", row.host), ("counter", "services"))
        new, when = self.name("renamed"), self.stamp(row.id)
        self.set(SERVICES, row.id, *locks, host=new, updated_at=when)

    # --- aggregates, as Nova's API changes them --------------------------------------------

    def new_aggregate(self) -> None:
        aggregate_id = int(self.name("")) + 1000
        values = {"id": aggregate_id, "created_at": self.stamp(aggregate_id)}
        self.insert(
            tables.aggregates,
            ("counter", "aggregates"),
            **values,
            uuid=self.name("a"),
            name=self.name("a"),
        )

    def join(self) -> None:
        row, host = self.pick(tables.aggregates), self.random.choice(self.hosts)
        members = tables.aggregate_hosts
        if row is None or self.exists(
            members, members.c.aggregate_id == row.id, members.c.host == host
        ):
            return
        lock = ("counter", "aggregates")
        when = self.stamp(row.id)
        self.insert(members, lock, aggregate_id=row.id, host=host, created_at=when)

    def leave(self, row: Any) -> None:
        self.vanish(tables.aggregate_hosts, row.id, ("counter", "aggregates"))

    def describe(self) -> None:
        row, table = self.pick(tables.aggregates), tables.aggregate_metadata
        if row is None:
            return
        known, lock = self.pick(table, table.c.aggregate_id == row.id), ("counter", "aggregates")
        value, when = self.name("v"), self.stamp(row.id)
        if known is None and self.exists(table, table.c.aggregate_id == row.id):
            return
        if known is None:
            born = {"aggregate_id": row.id, "key": "ssd", "value": value, "created_at": when}
            self.insert(table, lock, **born)
        elif self.random.random() < 0.3:
            self.vanish(table, known.id, lock)
        else:
            self.set(table, known.id, lock, value=value, updated_at=when)

    def drop_aggregate(self) -> None:
        row, lock = self.pick(tables.aggregates), ("counter", "aggregates")
        if row is None or self.open:
            return
        for table in (tables.aggregate_hosts, tables.aggregate_metadata):
            with self.database.write() as connection:
                connection.execute(table.delete().where(table.c.aggregate_id == row.id))
        self.vanish(tables.aggregates, row.id, lock)

    # --- instances -----------------------------------------------------------------------

    def new_instance(self) -> None:
        row_id = int(self.name("")) + 1000
        self.insert(
            INSTANCES,
            id=row_id,
            created_at=self.stamp(row_id),
            deleted=0,
            uuid=self.name("i"),
            host=self.random.choice((None, *self.hosts)),
            project_id="p",
        )

    def move_instance(self, row: Any) -> None:
        host = self.random.choice((None, *self.hosts))
        state = self.random.choice(("active", "error", "resized"))
        when = self.stamp(row.id)
        self.set(INSTANCES, row.id, host=host, vm_state=state, updated_at=when)

    def delete_instance(self, row: Any) -> None:
        self.set(INSTANCES, row.id, deleted=row.id, deleted_at=self.stamp(row.id))

    def vanish_instance(self, row: Any) -> None:
        self.vanish(INSTANCES, row.id, ("counter", "instances"))
