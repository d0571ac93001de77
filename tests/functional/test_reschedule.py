"""A build that fails on one host is tried on others; what is told about it is what happened."""

import re
from collections import defaultdict

import pytest

from scheduler.concurrency import EVENTLET, THREADING
from tests.waiting import wait_until
from tests.world import databases, usage
from tests.world.booting import boot, states

HOSTS = 16
BURSTS = ("4",) * 4  # few at once: the hosts of one request are no alternates of each other
MAX_ATTEMPTS = 3
SETTINGS = {
    "DEFAULT": {"reserved_host_memory_mb": 0, "periodic_fuzzy_delay": 0},
    "scheduler": {"claims": "database", "periodic_task_interval": 1},
}
NEWTON = {
    **SETTINGS,
    "upgrade_levels": {"scheduler": "newton", "compute": "newton"},
}
OPEN_CLAIMS = "SELECT host FROM claims WHERE host != '' AND closed_at IS NULL"


def failures(computes):
    """For every instance the hosts on which its build failed, in order, from the hosts' log."""
    found = defaultdict(list)
    for uuid, host in re.findall(r"Instance (\S+) is not built on (\S+): The hyp", computes.log):
        found[uuid].append(host)
    return found


@pytest.mark.parametrize(
    ("settings", "backend"),
    [
        pytest.param(SETTINGS, EVENTLET, id="alternates"),
        pytest.param(NEWTON, THREADING, id="as Newton"),
    ],
)
def test_every_attempt_is_on_another_host_and_is_counted(
    deployment, transport_url, mariadb_url, settings, backend
):
    cloud = deployment(transport_url, mariadb_url, backend=backend, settings=settings)
    cloud.start(HOSTS, "--build-seconds", "0", "--fail-rate", "0.65", "--seed", "7")
    computes = next(each for each in cloud.daemons if each.name == "nova-compute-stub")

    servers = [each for count in BURSTS for each in boot(cloud, "m1.tiny", "--count", count)]

    tried = failures(computes)
    assert states(servers) == {"ACTIVE", "ERROR"}, "most of the builds fail"
    assert any(server["state"] == "ACTIVE" and server["attempts"] > 1 for server in servers)
    for server in servers:
        failed_on = tried[server["id"]]
        assert len(set(failed_on)) == len(failed_on), "the same host again"
        if server["state"] == "ACTIVE":
            assert server["attempts"] == len(failed_on) + 1
            assert (server["host"] not in failed_on, server["fault"]) == (True, None)
        else:
            assert server["attempts"] == len(failed_on) == MAX_ATTEMPTS
            assert server["host"] is None
            assert f"Exceeded max scheduling attempts {MAX_ATTEMPTS}" in server["fault"]
    assert usage.settled(mariadb_url)
    # Also with nobody asking for hosts the scheduler sees which claims are over.
    wait_until(lambda: not databases.query(mariadb_url, OPEN_CLAIMS), 120, "no open claim")
