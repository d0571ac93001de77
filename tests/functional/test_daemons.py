"""The tests' own handling of the programs: what they say when one does not come up."""

from __future__ import annotations

import psutil
import pytest

from tests.waiting import wait_until
from tests.world.deployment import CommandFailed


def test_an_early_end_is_reported_with_what_was_printed(deployment, sqlite_url):
    started = deployment("fake://", sqlite_url, driver="no_such").start_scheduler()
    with pytest.raises(AssertionError, match=r"(?s)nova-scheduler ended with 1:.*no_such"):
        started.wait_ready()


def test_nothing_of_a_daemon_outlives_its_end(deployment, transport_url, sqlite_url, backend):
    cloud = deployment(transport_url, sqlite_url, backend=backend).start(1)
    pids = {daemon.pid for daemon in cloud.daemons}
    for pid in list(pids):
        pids |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
    assert len(pids) >= 3
    cloud.close()
    wait_until(lambda: not any(map(is_running, pids)), 60, f"the end of {pids}")


def is_running(pid: int) -> bool:
    """Whether a process is there, other than as an exit code that nobody has asked for."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_failing_command_shows_its_error(deployment, transport_url, sqlite_url):
    with pytest.raises(CommandFailed, match="no-such-command") as failed:
        deployment(transport_url, sqlite_url).command("nova-scheduler-manage", "no-such-command")
    assert failed.value.exit_code != 0


def test_servers_are_booted_on_postgresql(deployment, transport_url, postgresql_url):
    """Other tests boot on SQLite and MariaDB."""
    cloud = deployment(transport_url, postgresql_url).start(2)
    booted = cloud.boot(
        *("--flavor", "m1.tiny", "--image", "cirros", "--count", "3", "--wait", "several")
    )
    assert [each["State"] for each in booted] == ["ACTIVE"] * 3
    assert sum(each["Instances"] for each in cloud.manage("host", "list")) == 3
