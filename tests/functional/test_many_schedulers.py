"""Several scheduler daemons with several workers each, on one fleet, all at once."""

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler import errors
from scheduler.concurrency import EVENTLET, THREADING
from tests.world import databases, fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.fleet import a_spec

SERVER_MB = 2048
PER_HOST = 3
HOST_NAMES = [f"cmp{number}" for number in range(1, 11)]
CAPACITY = PER_HOST * len(HOST_NAMES)
CALLERS = 32
#: They claim hosts in the database, as that is the default there.
TWO_WORKERS = {"workers": 2}
TOPIC = "schedulers_of_old"
SETTINGS = {
    "scheduler": TWO_WORKERS,
    "DEFAULT": {"service_down_time": 3600, "scheduler_topic": TOPIC},
    # Nobody listens there, and no answer waits for it.
    "oslo_messaging_notifications": {
        "driver": "messagingv2",
        "transport_url": "rabbit://guest:guest@127.0.0.1:1/",
    },
}


@pytest.fixture(params=["mariadb_url", "postgresql_url", "sqlite_url"])
def any_database(request):
    return str(request.getfixturevalue(request.param))


def test_a_fleet_is_filled_to_the_last_mib_and_no_further(
    deployment, transport_url, any_database, tmp_path
):
    size = dict.fromkeys(("memory_mb", "free_ram_mb"), PER_HOST * SERVER_MB)
    fleet.install(any_database, HOST_NAMES, ram_allocation_ratio=1.0, **size)
    backend = THREADING if "sqlite" in any_database else EVENTLET
    cloud = deployment(transport_url, any_database, backend=backend, settings=SETTINGS)
    daemons = [cloud.start_scheduler(), cloud.start_scheduler()]
    for daemon in daemons:
        daemon.wait_ready()
    names = [str(uuid.uuid4()) for _ in range(CAPACITY + CALLERS)]
    with (
        scheduler_api(tmp_path, transport_url, topic=TOPIC) as api,
        ThreadPoolExecutor(CALLERS) as callers,
    ):

        def ask(name):
            try:
                ((chosen, *_rest),) = api.select_destinations(
                    a_context(), a_spec(name), [name], return_objects=True, return_alternates=True
                )
            except errors.NoValidHost:
                return None
            return str(chosen.service_host)

        answers = dict(zip(names, callers.map(ask, names), strict=True))
        placed = {name: host for name, host in answers.items() if host is not None}
    assert Counter(placed.values()) == dict.fromkeys(HOST_NAMES, PER_HOST)
    rows = databases.query(any_database, "SELECT * FROM claims WHERE host != ''")
    assert {row["consumer_uuid"]: row["host"] for row in rows} == placed
    assert len(rows) == len(placed) == CAPACITY
    daemons[0].wait_log("ERROR oslo_messaging.notify.messaging", 60)  # the operator is told
