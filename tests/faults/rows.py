"""Rows that are not as they should be."""

from __future__ import annotations

import time
from typing import Final

from tests.faults.world import HOSTS, World

BAD_VALUES: Final = {
    "compute_nodes": (
        "stats = '{\"num_instances\": \"many\"', cpu_info = '[', memory_mb = 0",
        "free_disk_gb = NULL, metrics = 'x', supported_instances = '{}'",
        "numa_topology = '{\"nova_object.name\": 1}', pci_stats = '[[', vcpus = -5",
        "free_ram_mb = 2147483647, local_gb = -1, disk_available_least = NULL",
        "host = NULL",
        "created_at = '9999-12-31 23:59:59'",
    ),
    "aggregate_hosts": ("host = NULL",),
    "services": ("last_seen_up = NULL, created_at = NULL",),
}


def rows_half_written(world: World) -> None:
    """One host's rows say nonsense; the other hosts go on."""
    victim = HOSTS[0]
    for table, several in BAD_VALUES.items():
        (saved,) = world.query(f"SELECT * FROM {table} WHERE host = :host", host=victim)
        restored = ", ".join(f"`{name}` = :{name}" for name in saved if name != "updated_at")
        for assignment in (*several, restored):
            statement = f"UPDATE {table} SET {assignment}, updated_at = UTC_TIMESTAMP()"
            world.query(f"{statement} WHERE id = :id", **saved)
            time.sleep(0.5)


def hosts_come_and_go(world: World) -> None:
    """A burst of hosts that register and vanish, some of them without a trace."""
    for number in range(10):
        world.add_host(f"passing{number}")
        if number % 2:
            world.query("DELETE FROM compute_nodes WHERE host = :host", host=f"passing{number}")
    for table in ("compute_nodes", "services"):
        gone = f"UPDATE {table} SET deleted = id, deleted_at = UTC_TIMESTAMP()"
        world.query(f"{gone} WHERE host LIKE 'passing%'")
