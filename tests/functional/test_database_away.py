"""The scheduler while its database is away: it goes on with what it knows, but not for ever."""

import uuid

import pytest

from scheduler import errors
from scheduler.concurrency import EVENTLET, THREADING
from tests.servers import mariadb
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.observing import SETTINGS, Endpoint

MAX_AGE_SECONDS = 5


def answer(api, **fields):
    """The host that a request gets, or the name of the error."""
    own = str(uuid.uuid4())
    try:
        (chosen,) = api.select_destinations(a_context(), fleet.a_spec(own, **fields), [own])
    except errors.NovaException as error:
        return type(error).__name__
    return str(chosen["host"])


@pytest.mark.parametrize(
    ("driver", "backend"), [("filter_scheduler", EVENTLET), ("caching_scheduler", THREADING)]
)
def test_decisions_end_with_the_age_of_the_state_and_come_back(
    deployment, transport_url, tmp_path, driver, backend
):
    require(mariadb.PROGRAMS)
    settings = {
        "DEFAULT": {"service_down_time": 3600, "periodic_fuzzy_delay": 0},
        "scheduler": {
            "max_state_age_seconds": MAX_AGE_SECONDS,
            "periodic_task_interval": 1,
            "claims": "none",
        },
    }
    with MariaDB(durable=True) as server:
        url = server.url(server.create_database())
        fleet.install(url)
        cloud = deployment(transport_url, url, driver, backend, {**settings, **SETTINGS})
        scheduler = cloud.start_scheduler().wait_ready()
        endpoint = Endpoint.of(scheduler)
        with scheduler_api(tmp_path, transport_url) as api:
            assert answer(api) in fleet.HOSTS

            server.kill()  # which, unlike a stop, takes no time at all
            assert answer(api) in fleet.HOSTS, "the last state is fresh enough"
            seen = []
            wait_until(lambda: _gave_up(api, seen), 60, lambda: f"an end of decisions: {seen}")
            assert set(seen) <= {*fleet.HOSTS, "StateUnavailable"}
            assert answer(api, ignore_hosts=list(fleet.HOSTS)) == "StateUnavailable"
            assert scheduler.exit_code is None
            wait_until(lambda: endpoint.failing("/readyz") == (503, ["state"]), 60, "not ready")
            assert endpoint.failing("/healthz") == (200, [])
            assert endpoint.metrics()["state_read_failures_total",] > 0

            server.start()
            wait_until(lambda: answer(api) in fleet.HOSTS, 60, "decisions again")
            wait_until(lambda: endpoint.failing("/readyz") == (200, []), 60, "ready again")
            assert answer(api, ignore_hosts=list(fleet.HOSTS)) == "NoValidHost"
        assert scheduler.terminate() == 0


def _gave_up(api, seen):
    seen.append(answer(api))
    return seen[-1] == "StateUnavailable"
