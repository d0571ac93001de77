"""Servers are built where each driver should put them: processes of their own, a real broker."""

import signal

import pytest

from conductor_stub import server_rows
from scheduler.db import instances
from tests.waiting import wait_until
from tests.world.booting import SERVER, boot, delete, hosts, states

HOSTS = 5
NO_HOST = "No valid host was found. There are not enough hosts available."
SETTINGS = {"DEFAULT": {"reserved_host_memory_mb": 0, "periodic_fuzzy_delay": 0}}


@pytest.fixture(scope="module")
def cloud(on_sqlite):
    """Hosts in two zones, for tests that look at their own servers only."""
    with on_sqlite(settings=SETTINGS) as made:
        yield made.start(HOSTS, "--build-seconds", "0")


def group(cloud, name, policy):
    """Make a server group; the option that puts servers into it."""
    cloud.command("nova-scheduler-manage", "group", "create", name, "--policy", policy)
    return ("--group", name)


def test_members_that_keep_apart(cloud):
    apart = group(cloud, "apart", "anti-affinity")
    too_many = boot(cloud, "m1.tiny", "--count", str(HOSTS + 1), *apart)
    servers = boot(cloud, "m1.tiny", "--count", str(HOSTS), *apart)
    one_more = boot(cloud, "m1.tiny", *apart)
    assert states(too_many) == {"ERROR"}, "all or nothing"
    assert states(servers) == {"ACTIVE"}
    assert len(set(hosts(servers))) == HOSTS
    assert {each["fault"] for each in too_many + one_more} == {NO_HOST}


@pytest.mark.parametrize(
    ("flavor", "count", "state"), [("m1.tiny", 3, "ACTIVE"), ("m1.xlarge", 30, "ERROR")]
)
def test_servers_asked_for_as_todays_api_does(cloud, flavor, count, state):
    servers = boot(cloud, flavor, "--count", str(count), "--api", "current")
    assert (len(servers), states(servers)) == (count, {state})
    fault = None if state == "ACTIVE" else NO_HOST
    assert {(each["fault"], each["attempts"]) for each in servers} == {(fault, 1)}
    with cloud.database() as database, database.read() as conn:
        assert server_rows.list_build_requests(conn) == []


def test_the_chance_driver_takes_any_host_that_is_up(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url, "chance_scheduler").start(3)
    disabled, *up = (each["host"] for each in cloud.manage("host", "list"))
    cloud.command("nova-scheduler-manage", "service", "set", "--disable", disabled, "nova-compute")

    servers = boot(cloud, "m1.tiny", "--count", "8", "--ignore-host", up[0])

    assert states(servers) == {"ACTIVE"}
    assert set(hosts(servers)) == {up[1]}
    delete(cloud, servers)
    assert cloud.servers() == []


def test_servers_are_booted_on_postgresql(deployment, transport_url, postgresql_url):
    """Other tests boot on SQLite and MariaDB."""
    cloud = deployment(transport_url, postgresql_url).start(2)
    servers = boot(cloud, "m1.tiny", "--count", "3")
    assert states(servers) == {"ACTIVE"}
    assert sum(each["instances"] for each in cloud.manage("host", "list")) == 3


def test_a_build_in_hand_is_finished_before_the_end(deployment, transport_url, sqlite_url, backend):
    """On hosts to which a SIGHUP did nothing."""
    cloud = deployment(transport_url, sqlite_url, backend=backend)
    computes = cloud.start(1, "--build-seconds", "2").daemons[-1]
    computes.signal(signal.SIGHUP)
    cloud.boot("--flavor", "m1.tiny", *SERVER)

    def has_begun():
        with cloud.database() as database, database.read() as conn:
            return [e.task_state for e in instances.list_all(conn, parts=False)] == ["spawning"]

    wait_until(has_begun, describe="a build that has begun")
    assert computes.terminate() == 0
    assert states(cloud.servers()) == {"ACTIVE"}


EARLY = ("boot", "--flavor", "m1.tiny", *SERVER, "--wait")


def test_services_that_do_not_run_are_named(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url, settings={"DEFAULT": {"debug": False}})
    cloud.sync_database()
    done = cloud.run("nova-conductor-stub", *EARLY, "--timeout", "2")
    assert done.returncode == 1
    told = "nothing answers on topic 'conductor': is nova-conductor-stub serve running"
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert cloud.servers() == []


def test_booting_before_the_services_are_up(deployment, transport_url, sqlite_url):
    """The command is there first; it waits, and the server is built."""
    cloud = deployment(transport_url, sqlite_url)
    cloud.sync_database()
    early = cloud.start_daemon("nova-conductor-stub", *EARLY, "-f", "value", "-c", "State")
    early.wait_log("waiting for nova-conductor-stub")
    cloud.start(1)
    assert (early.wait(90), early.stdout.strip()) == (0, "ACTIVE")
