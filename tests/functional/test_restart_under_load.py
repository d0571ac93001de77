"""A scheduler that is stopped and started while others call it: every call gets its one answer."""

from __future__ import annotations

from scheduler.concurrency import THREADING
from tests.world import fleet
from tests.world.calling import crowd
from tests.world.fixtures import MakeDeployment

CALLERS = 6
RESTARTS = 2


def test_no_answer_is_lost_or_given_twice(
    deployment: MakeDeployment, transport_url: str, sqlite_url: str
) -> None:
    """On threads; test_systemd does it on eventlet."""
    settings = {"DEFAULT": {"service_down_time": 3600, "debug": False}}
    cloud = deployment(transport_url, sqlite_url, backend=THREADING, settings=settings)
    fleet.install(sqlite_url)
    scheduler = cloud.start_scheduler().wait_ready()
    with crowd(transport_url, CALLERS) as callers:
        for _ in range(RESTARTS):
            callers.wait_for_more_calls()
            assert scheduler.terminate() == 0
            assert "Traceback" not in scheduler.log
            scheduler = cloud.start_scheduler().wait_ready()
        callers.wait_for_more_calls()
        callers.finish()
    assert scheduler.terminate() == 0
