"""The examples of the documentation: as they stand, through the configuration, to a decision."""

import pathlib
import queue
import sys

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging.notify import _impl_test

from conductor_stub import server_rows
from scheduler import conf as project_options
from scheduler import errors, nova_compat, objects
from scheduler.daemon.service import build_manager
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.rpc.context import RequestContext
from tests.waiting import wait_until
from tests.world import fleet

EXAMPLES = pathlib.Path(__file__).parents[3] / "docs" / "examples"
HOSTS = ("doc1", "doc2", "ops1", "dev1", "dev2")
UUIDS = [f"00000000-0000-4000-a000-00000000000{number}" for number in range(1, 4)]
IP_SCHEDULER = "[scheduler]\ndriver = ip_scheduler.IPScheduler\n"
PREFIX_SCHEDULER = "[scheduler]\ndriver = prefix_scheduler.PrefixScheduler\n"
DUMP_FILTER = """[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = dump_filter.DumpFilter
enabled_filters = ComputeFilter, DumpFilter
"""
BOTH = pytest.mark.parametrize("lines", [IP_SCHEDULER, PREFIX_SCHEDULER], ids=["nova", "ours"])
DEADLINE_SECONDS = 20


@pytest.fixture
def database(tmp_path):
    """The hosts, all of them just heard from, and instances that wait for one."""
    url = f"sqlite:///{tmp_path}/nova.sqlite"
    fleet.install(url, HOSTS)
    database = Database(url)
    with database.write() as connection:
        for uuid in UUIDS:
            instance = objects.Instance(
                uuid=uuid, host="old", vm_state="building", metadata={}, system_metadata={}
            )
            server_rows.create_instance(connection, instance)
    yield database
    database.dispose()


@pytest.fixture
def start(tmp_path, database, monkeypatch, clean_imports):
    """A function that makes a scheduler from lines of configuration, as the daemon does."""
    monkeypatch.syspath_prepend(EXAMPLES)
    project_options.register_all(cfg.CONF)

    def manager(lines):
        path = tmp_path / "nova.conf"
        path.write_text(
            "[DEFAULT]\nhost = sched1\nservice_down_time = 3600\ntransport_url = fake://\n"
            "[oslo_messaging_notifications]\ndriver = test\n"
            f"[database]\nconnection = sqlite:///{tmp_path}/nova.sqlite\n{lines}"
        )
        cfg.CONF(["--config-file", str(path)], project="nova", default_config_dirs=[])
        nova_compat.install(cfg.CONF)
        made = build_manager(cfg.CONF, Databases(database))
        made.driver.host_manager.refresh()
        return made

    yield manager
    cfg.CONF.reset()
    _impl_test.reset()
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


def a_context(address):
    return RequestContext("u", "p", remote_address=address, overwrite=False)


def chosen(manager, address, uuids, **fields):
    answer = manager.select_destinations(
        a_context(address),
        spec_obj=fleet.a_spec(uuids[0], **fields),
        instance_uuids=uuids,
        return_objects=True,
        return_alternates=True,
    )
    assert len(answer) == len(uuids)
    return [first.service_host for first, *_alternates in answer]


#: The hosts of the department that an address belongs to.
DEPARTMENTS = {
    "10.1.7.42": {"doc1", "doc2"},
    "10.15.0.1": {"doc1", "doc2"},
    "10.2.0.1": {"ops1"},
    "10.20.0.1": {"ops1"},
    "10.3.0.1": {"dev1", "dev2"},
    "192.0.2.1": {"dev1", "dev2"},
    "": {"dev1", "dev2"},
    None: {"dev1", "dev2"},
}


@BOTH
def test_hosts_of_the_department(start, lines):
    manager = start(lines)
    drawn = {
        address: {host for _ in range(8) for host in chosen(manager, address, UUIDS)}
        for address in DEPARTMENTS
    }
    assert drawn == DEPARTMENTS


@BOTH
def test_hosts_that_are_to_be_ignored(start, lines):
    manager = start(lines)

    assert chosen(manager, "10.1.0.1", UUIDS, ignore_hosts=["doc2"]) == ["doc1"] * 3
    with pytest.raises(errors.NoValidHost):
        chosen(manager, "10.2.0.1", UUIDS, ignore_hosts=["ops1"])


@BOTH
def test_what_an_older_caller_gets(start, lines):
    spec = fleet.a_spec(UUIDS[0])
    answer = start(lines).select_destinations(
        a_context("10.2.0.1"),
        request_spec=spec.to_legacy_request_spec_dict(),
        filter_properties=spec.to_legacy_filter_properties_dict(),
    )

    [reply] = answer
    assert (reply["host"], reply["nodename"], reply["limits"] or {}) == ("ops1", "ops1", {})


class Host:
    """Keeps what is cast to it, undecoded."""

    target = oslo_messaging.Target(version="2.37")

    def __init__(self):
        self.received = queue.Queue()

    def run_instance(self, context, **arguments):
        self.received.put(arguments)


@pytest.fixture
def ops1(start):
    """The host ``ops1`` on the bus inside this process."""
    host = Host()
    server = oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(cfg.CONF, url="fake://"),
        oslo_messaging.Target(topic="compute", server="ops1", exchange="nova"),
        [host],
        executor="threading",
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    server.start()
    yield host
    server.stop()
    server.wait()


def run_instances(manager, uuids, ignored):
    context = a_context("10.2.0.1")
    spec = {**fleet.a_spec(uuids[0]).to_legacy_request_spec_dict(), "instance_uuids": uuids}
    properties = {"ignore_hosts": ignored, "context": context}
    manager.driver.schedule_run_instance(context, spec, "s3cret", [], None, True, properties, False)


def test_a_driver_that_tells_hosts_to_build(start, ops1, database):
    """The instance in the middle is gone; the others are built all the same."""
    gone = "00000000-0000-4000-a000-0000000000ff"
    run_instances(start(IP_SCHEDULER), [UUIDS[0], gone, UUIDS[1]], [])

    casts = [ops1.received.get(timeout=DEADLINE_SECONDS) for _ in range(2)]
    assert [cast["instance"]["uuid"] for cast in casts] == [UUIDS[0], UUIDS[1]]
    launched = [cast["request_spec"]["instance_properties"]["launch_index"] for cast in casts]
    assert launched == [0, 2]
    assert {(cast["node"], cast["admin_password"]) for cast in casts} == {(None, "s3cret")}
    assert not any("context" in cast["filter_properties"] for cast in casts)
    with database.read() as connection:
        hosts = [each.host for each in instances.list_all(connection, uuids=UUIDS)]
    assert hosts == [None, None, "old"]


def test_a_driver_that_finds_no_host(start, database):
    run_instances(start(IP_SCHEDULER), UUIDS[:2], ["ops1"])

    reason = "No valid host was found. Could not find another compute"
    with database.read() as connection:
        states = [each.vm_state for each in instances.list_all(connection, uuids=UUIDS)]
        fault = server_rows.latest_faults(connection, UUIDS)[UUIDS[0]]
    assert states == ["error", "error", "building"]
    assert (fault.code, fault.message, fault.host) == (500, reason, "sched1")
    wait_until(lambda: len(_impl_test.NOTIFICATIONS) == 2)
    (_context, message, priority, _retry), _second = _impl_test.NOTIFICATIONS
    assert (message["event_type"], priority) == ("scheduler.run_instance", "ERROR")
    told = [message["payload"][name] for name in ("instance_id", "state", "method", "reason")]
    assert told == [UUIDS[0], "error", "run_instance", reason]


def test_select_hosts(start):
    driver = start(IP_SCHEDULER).driver
    context = a_context("10.2.0.1")

    assert driver.select_hosts(context, {"instance_uuids": UUIDS}, {}) == ["ops1"] * 3


def test_the_filter_that_tells_everything(start, caplog):
    caplog.set_level("DEBUG", "dump_filter")
    manager = start(DUMP_FILTER)

    [host] = chosen(manager, "10.1.0.1", UUIDS[:1], availability_zone="az-east")

    assert host in HOSTS
    told = [record.getMessage() for record in caplog.records if record.name == "dump_filter"]
    for line in (
        f"request: instance_uuid = {UUIDS[0]}",
        "request: availability_zone = az-east",
        "host doc1: host = doc1",
        "host doc1: nodename = doc1",
        f"host doc1: free_ram_mb = {fleet.MEMORY_MB}",
        f"host doc1: vcpus_total = {fleet.VCPUS}",
        "host doc1: ram_allocation_ratio = 1.5",
        "host doc1: limits = {}",
        "host dev2: supported_instances = [['x86_64', 'kvm', 'hvm']]",
    ):
        assert line in told
    per_host = [text for text in told if text.startswith("host ops1: ")]
    assert len(per_host) == len(sys.modules["dump_filter"].OF_HOST)
    [filtered] = manager.driver.recorder.records[-1].filters[1:]
    assert (filtered.name, filtered.start, filtered.end) == ("DumpFilter", 5, 5)
