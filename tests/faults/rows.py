"""Rows that are not as they should be."""

import time
import uuid
from typing import Final

from tests.faults.world import HOSTS, World

BAD_VALUES: Final = {
    "compute_nodes": (
        "stats = '{\"num_instances\": \"many\"', cpu_info = '[', memory_mb = 0",
        "free_disk_gb = NULL, metrics = 'x', supported_instances = '{}'",
        "numa_topology = '{\"nova_object.name\": 1}', pci_stats = '[[', vcpus = -5",
        "free_ram_mb = 2147483647, local_gb = -1, disk_available_least = NULL",
        "host = NULL",
        "uuid = NULL",
        "hypervisor_hostname = NULL",
        "created_at = '9999-12-31 23:59:59'",
    ),
    "services": ("last_seen_up = NULL, created_at = NULL", "host = NULL, report_count = -1"),
    "instances": (
        "uuid = 'none', project_id = NULL, user_id = NULL, vm_state = 'nonsense'",
        "node = 'nowhere', instance_type_id = -1, created_at = '9999-12-31 23:59:59'",
        "host = NULL",
    ),
    "aggregate_hosts": ("host = NULL",),
    "aggregates": ("uuid = 'none', name = NULL", "created_at = NULL"),
    "aggregate_metadata": ("`key` = '', value = REPEAT('x', 255)",),
    "claims": (
        "numa_topology = '[[', pci_requests = '{}'",
        "pci_requests = REPEAT('[', 100000), answer = '{'",
        "vcpus = -5, memory_mb = 2147483647, disk_gb = -2147483648",
        "node = '', flavor_id = -1, expires_at = '9999-12-31 23:59:59'",
    ),
}
#: Of these any row will do: there is one aggregate, and it has the host.
OF_ALL: Final = ("aggregates", "aggregate_metadata")
SERVER: Final = """
INSERT INTO instances (uuid, host, node, deleted, created_at)
VALUES (:uuid, :host, :host, 0, UTC_TIMESTAMP())
"""


def rows_half_written(world: World) -> None:
    """One host's rows say nonsense; the other hosts go on."""
    victim, own = HOSTS[0], str(uuid.uuid4())
    world.query(SERVER, uuid=own, host=victim)
    for table, several in BAD_VALUES.items():
        which = "" if table in OF_ALL else "WHERE host = :host"
        query = f"SELECT * FROM {table} {which} ORDER BY id LIMIT 1"
        (saved,) = world.query(query, host=victim)
        touched = ", updated_at = UTC_TIMESTAMP()" if "updated_at" in saved else ""
        restored = ", ".join(f"`{name}` = :{name}" for name in saved if name != "updated_at")
        for assignment in (*several, restored):
            world.query(f"UPDATE {table} SET {assignment}{touched} WHERE id = :id", **saved)
            world.query("UPDATE aggregates SET updated_at = UTC_TIMESTAMP()")
            time.sleep(0.5)
    world.query("DELETE FROM instances WHERE uuid = :uuid", uuid=own)


def hosts_come_and_go(world: World) -> None:
    """A burst of hosts that register and vanish, some of them without a trace."""
    for number in range(10):
        world.add_host(f"passing{number}")
        if number % 2:
            world.query("DELETE FROM compute_nodes WHERE host = :host", host=f"passing{number}")
    for table in ("compute_nodes", "services"):
        gone = f"UPDATE {table} SET deleted = id, deleted_at = UTC_TIMESTAMP()"
        world.query(f"{gone} WHERE host LIKE 'passing%'")
