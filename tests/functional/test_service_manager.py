"""What a scheduler tells the service manager while it runs, reloads, hangs and recovers."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from tests.functional import gate_driver
from tests.waiting import wait_until
from tests.world.process import Daemon

pytestmark = pytest.mark.functional

REPOSITORY = Path(__file__).parents[2]
WATCHDOG = {"WATCHDOG_USEC": "3000000"}
LOOKS = 2
STATUS = re.compile(r"STATUS=2 workers, 0 hosts, state read \d+ s ago, 0 decisions")


def told(daemon: Daemon) -> list[str]:
    """What the next few looks of the workers tell."""
    daemon.notified.messages.clear()
    messages = daemon.notified.messages
    wait_until(
        lambda: daemon.notified.receive(5) and sum("STATUS=" in one for one in messages) >= LOOKS
    )
    return messages


def is_fed(daemon: Daemon) -> bool:
    return "WATCHDOG=1" in told(daemon)


def workers(daemon: Daemon) -> list[psutil.Process]:
    return psutil.Process(daemon.pid).children()


def test_a_daemon_of_two_workers(deployment, transport_url, sqlite_url, backend):
    settings = {"scheduler": {"workers": 2, "claims": "database"}}
    cloud = deployment(transport_url, sqlite_url, backend=backend, settings=settings)
    cloud.sync_database()
    scheduler = cloud.start_scheduler(extra_environment=WATCHDOG).wait_ready()

    assert scheduler.notified.messages.count("READY=1") == 1
    wait_until(lambda: any(map(STATUS.fullmatch, told(scheduler))), 60, "a status")
    wait_until(lambda: is_fed(scheduler), 60, "a watchdog that is fed")

    hung, _other = workers(scheduler)
    hung.suspend()
    wait_until(lambda: not is_fed(scheduler), 60, "a watchdog that starves")
    hung.resume()
    wait_until(lambda: is_fed(scheduler), 60, "a watchdog that is fed again")

    hung.kill()
    wait_until(lambda: hung not in workers(scheduler), 60, "the end of the killed worker")
    wait_until(lambda: is_fed(scheduler), 60, "another worker in the place of the killed one")
    assert scheduler.terminate() == 0


def test_a_reload_is_told_of_and_a_decision_that_never_ends_starves_the_watchdog(
    deployment, transport_url, sqlite_url, tmp_path
):
    gate = tmp_path / "gate"
    gate.mkdir()
    driver = f"{gate_driver.__name__}.{gate_driver.GateDriver.__name__}"
    cloud = deployment(transport_url, sqlite_url, driver=driver)
    cloud.sync_database()
    environment = {
        **WATCHDOG,
        "PYTHONPATH": str(REPOSITORY),
        gate_driver.FOLDER_VARIABLE: str(gate),
    }
    scheduler = cloud.start_scheduler(extra_environment=environment)
    conductor = cloud.start_conductor().wait_ready()
    scheduler.wait_ready()
    cloud.boot("stuck", "--flavor", "m1.tiny", "--image", "cirros")

    scheduler.notified.messages.clear()
    scheduler.signal(signal.SIGHUP)
    wait_until(lambda: scheduler.is_announced, 60, "the end of the reload")
    lines = scheduler.notified.messages
    assert lines.index("RELOADING=1") < lines.index("READY=1")

    scheduler.wait_log("This worker is stuck: a request has not moved for")
    wait_until(lambda: not is_fed(scheduler), 60, "a watchdog that starves")

    (gate / gate_driver.OPEN).touch()
    wait_until(lambda: is_fed(scheduler), 60, "a watchdog that is fed again")
    assert scheduler.terminate() == 0
    assert conductor.terminate() == 0
