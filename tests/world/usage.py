"""What the compute nodes say is used, next to what their instances add up to.

In plain SQL, apart from the project's own queries: this is the second opinion on them.
"""

from typing import NamedTuple

from tests.waiting import wait_until
from tests.world import databases

_NODES = """
    SELECT host, memory_mb, local_gb, vcpus_used, memory_mb_used, local_gb_used, running_vms,
           free_ram_mb, free_disk_gb
    FROM compute_nodes WHERE deleted = 0
"""
_INSTANCES = """
    SELECT host, SUM(vcpus) AS vcpus, SUM(memory_mb) AS memory_mb,
           SUM(root_gb + ephemeral_gb) AS disk_gb, COUNT(*) AS number
    FROM instances WHERE deleted = 0 AND host IS NOT NULL GROUP BY host
"""


class Usage(NamedTuple):
    """What of one host is used, and what is free."""

    vcpus_used: int
    memory_mb_used: int
    local_gb_used: int
    running_vms: int
    free_ram_mb: int
    free_disk_gb: int


class Hosts(NamedTuple):
    """By host: its size, what its compute node says, and what follows from its instances."""

    memory_mb: dict[str, int]
    local_gb: dict[str, int]
    reported: dict[str, Usage]
    summed: dict[str, Usage]


def settled(database_url: str) -> Hosts:
    """The hosts once what the hosts say is what their instances add up to: soon."""

    def found() -> Hosts | None:
        hosts = read(database_url)
        return hosts if hosts.reported == hosts.summed else None

    hosts = wait_until(found, 60, lambda: f"every host to count what it has: {read(database_url)}")
    assert hosts is not None
    return hosts


def read(database_url: str) -> Hosts:
    """The usage of all hosts, which keep nothing for themselves (``reserved_host_*`` is 0)."""
    nodes, sums = databases.query(database_url, _NODES), databases.query(database_url, _INSTANCES)
    by_host = {row["host"]: row for row in sums}
    assert by_host.keys() <= {node["host"] for node in nodes}, "an instance is on no known host"
    hosts = Hosts({}, {}, {}, {})
    for node in nodes:
        host = node["host"]
        found = by_host.get(host, {"vcpus": 0, "memory_mb": 0, "disk_gb": 0, "number": 0})
        vcpus, memory_mb, disk_gb, number = (
            int(found[name]) for name in ("vcpus", "memory_mb", "disk_gb", "number")
        )
        hosts.memory_mb[host], hosts.local_gb[host] = node["memory_mb"], node["local_gb"]
        hosts.reported[host] = Usage(*(node[name] for name in Usage._fields))
        free = (node["memory_mb"] - memory_mb, node["local_gb"] - disk_gb)
        hosts.summed[host] = Usage(vcpus, memory_mb, disk_gb, number, *free)
    return hosts
