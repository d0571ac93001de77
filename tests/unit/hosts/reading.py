"""A host manager on a database of three hosts, and how tests look at it and change it."""

import time

from scheduler.db.cells import CellsReader
from scheduler.db.databases import Databases
from scheduler.hosts.host_manager import HostManager
from tests.builders import a_conf


class Clock:
    """The time at which the test began, moved on at will: however slow the machine is."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0
        self._began_at = time.time()

    def __call__(self) -> float:
        return self._began_at + self.ahead_seconds

    def pass_by(self, seconds: float) -> None:
        self.ahead_seconds += seconds


NODE = {
    "vcpus": 8,
    "vcpus_used": 1,
    "memory_mb": 8192,
    "memory_mb_used": 512,
    "free_ram_mb": 7680,
    "local_gb": 100,
    "local_gb_used": 10,
    "free_disk_gb": 90,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 7002000,
    "cpu_info": "{}",
    "stats": {"num_instances": "1", "io_workload": "0"},
}


def a_reader(conf, database):
    return CellsReader(conf, Databases(database))


def a_manager(database, clock):
    conf = a_conf()
    return HostManager(conf, a_reader(conf, database), clock)


def row_of(manager, host):
    return manager.table.rows[(host, f"{host}.example")]


def value(manager, host, name):
    return manager.table.value(row_of(manager, host), name)


def candidates(manager):
    return [manager.table.value(row, "host") for row in manager.table.order.tolist()]


def change(database, function, *arguments, **values):
    with database.write() as connection:
        return function(connection, *arguments, **values)
