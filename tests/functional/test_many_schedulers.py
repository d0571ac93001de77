"""Several scheduler daemons with several workers each, on one fleet, all at once."""

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler import errors
from scheduler.concurrency import EVENTLET, THREADING
from tests.waiting import wait_until
from tests.world import fleet, sql, usage
from tests.world.booting import boot, delete, states
from tests.world.bus import a_context, scheduler_api
from tests.world.fleet import a_spec

SERVER_MB = 2048
PER_HOST = 3
HOST_NAMES = [f"cmp{number}" for number in range(1, 11)]
CAPACITY = PER_HOST * len(HOST_NAMES)
CALLERS = 32
MEMORY_RATIO = 1.5
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


def claimed(database_url, state="1 = 1"):
    """The claims on hosts, in SQL apart from the project's own queries."""
    query = f"SELECT consumer_uuid, host FROM claims WHERE host != '' AND {state}"
    return sql.query(database_url, query)


def open_claims(database_url):
    return claimed(database_url, "closed_at IS NULL")


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
    rows = claimed(any_database)
    assert {row["consumer_uuid"]: row["host"] for row in rows} == placed
    assert len(rows) == len(placed) == CAPACITY
    daemons[0].wait_log("ERROR oslo_messaging.notify.messaging", 60)  # the operator is told


def test_bursts_of_servers_of_which_some_fail_leave_no_claim_and_no_wrong_count(
    deployment, transport_url, mariadb_url
):
    """The fleet has room for all but the last burst: empty, it could take 9 of its servers."""
    settings = {
        "scheduler": {**TWO_WORKERS, "periodic_task_interval": 1},
        "DEFAULT": {"reserved_host_memory_mb": 0, "periodic_fuzzy_delay": 0},
    }
    cloud = deployment(transport_url, mariadb_url, settings=settings)
    cloud.start(12, "--build-seconds", "0", "--fail-rate", "0.2", "--seed", "5")
    with ThreadPoolExecutor(3) as people:
        flavors = ("m1.tiny", "m1.small", "m1.tiny")
        bursts = [people.submit(boot, cloud, each, "--count", "12") for each in flavors]
        servers = [server for burst in bursts for server in burst.result()]
    servers += boot(cloud, "m1.xlarge", "--count", "10")

    active = [server for server in servers if server["state"] == "ACTIVE"]
    assert (len(servers), states(servers)) == (46, {"ACTIVE", "ERROR"})
    assert len(active) >= 28, "more failed than builds may"
    assert all(bool(each["host"]) is not bool(each["fault"]) for each in servers)
    assert all(each["host"] for each in active)
    assert any(each["attempts"] > 1 for each in active)
    found = usage.settled(mariadb_url)
    assert sum(each.running_vms for each in found.reported.values()) == len(active)
    for host, used in found.reported.items():
        assert used.memory_mb_used <= found.memory_mb[host] * MEMORY_RATIO
        assert used.local_gb_used <= found.local_gb[host]
    # Also with nobody asking for hosts the workers see which claims are over.
    wait_until(lambda: not open_claims(mariadb_url), describe=lambda: str(open_claims(mariadb_url)))
    delete(cloud, servers)
    assert cloud.servers() == []
    assert {each[:4] for each in usage.settled(mariadb_url).reported.values()} == {(0, 0, 0, 0)}
