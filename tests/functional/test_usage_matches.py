"""Many servers at once on MariaDB: every one has an end, and nothing is counted wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.world import usage
from tests.world.booting import boot, delete, states
from tests.world.fixtures import MakeDeployment

HOSTS = 12
# The fleet has room for all of these but the last burst: empty, it could take 9 of its servers.
BURSTS = [("m1.tiny", 20), ("m1.small", 20), ("m1.tiny", 20)]
TOO_MANY = ("m1.xlarge", 10)
SERVERS = 70
AT_ONCE = 3
RATIOS = {"memory": 1.5, "disk": 1.0}
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0, "debug": False}}


def test_servers_in_bursts(
    deployment: MakeDeployment, transport_url: str, mariadb_url: str
) -> None:
    cloud = deployment(transport_url, mariadb_url, settings=SETTINGS)
    cloud.start(HOSTS, "--build-seconds", "0.1", "--fail-rate", "0.05", "--seed", "1")

    with ThreadPoolExecutor(AT_ONCE) as people:
        bursts = [
            people.submit(boot, cloud, flavor, "--count", str(count)) for flavor, count in BURSTS
        ]
        servers = [server for burst in bursts for server in burst.result()]
    flavor, count = TOO_MANY
    servers += boot(cloud, flavor, "--count", str(count))

    assert len(servers) == SERVERS
    assert states(servers) == {"ACTIVE", "ERROR"}
    active = [server for server in servers if server["State"] == "ACTIVE"]
    assert len(active) >= SERVERS - count - 10, "more failed than builds may"
    assert all(server["Host"] and not server["Fault"] for server in active)
    assert all(s["Fault"] and not s["Host"] for s in servers if s["State"] == "ERROR")
    assert max(server["Attempts"] for server in active) > 1, "nothing was rescheduled"
    assert_right(usage.settled(mariadb_url), len(active))

    delete(cloud, servers)

    assert cloud.servers() == []
    assert_right(usage.settled(mariadb_url), 0)


def assert_right(found: usage.Hosts, servers: int) -> None:
    assert sum(each.running_vms for each in found.reported.values()) == servers
    for host, used in found.reported.items():
        assert used.memory_mb_used <= found.memory_mb[host] * RATIOS["memory"]
        assert used.local_gb_used <= found.local_gb[host] * RATIOS["disk"]
    if not servers:
        assert all(not any(each[:4]) for each in found.reported.values())
