"""Callers of Havana's and Icehouse's time: the scheduler itself tells hosts to build.

Reference pages rpc, sections 1 and 2.4, scheduling, 13, and conductor, 13.
"""

from dataclasses import dataclass
from uuid import uuid4

import pytest
import sqlalchemy as sa

from conductor_stub import server_rows
from scheduler import objects
from scheduler.concurrency import THREADING
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.db.tables import metadata
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import recorded
from tests.world.connection import RawCaller, enveloped, failure_of
from tests.world.process import Daemon

RUN_INSTANCE = "derived-havana-run_instance-v2.9.cast"
PREP_RESIZE = "derived-havana-prep_resize-v2.0.cast"
UUIDS = recorded(RUN_INSTANCE)["args"]["request_spec"]["instance_uuids"]
GHOST = "f4a0f8c0-0000-4000-8000-0000000000ff"
EVENTS = "notifications"
#: As far as a scheduler reads and writes them.
TABLES_OF_NOVA = {
    "instance_actions": "id INTEGER PRIMARY KEY, instance_uuid, request_id",
    "instance_actions_events": "id INTEGER PRIMARY KEY, created_at, updated_at, deleted,"
    " event, action_id, start_time, finish_time, result, traceback",
}


@dataclass
class Site:
    """A scheduler, its database, and the queues of what it sends."""

    daemon: Daemon
    database: Database
    raw: RawCaller
    #: Of all that this test sends.
    request_id: str

    def cast(self, name, **args):
        """Send the recorded message with *args* changed, as a new message."""
        message = recorded(name)
        message["args"].update(args)
        own = {
            "_unique_id": self.raw.call_keys()["_unique_id"],
            "_context_request_id": self.request_id,
        }
        self.raw.publish(enveloped({**message, **own}))

    def sent_to(self, queue):
        """The messages in *queue* because of this test; the queue is empty then.

        What is told of an earlier test's request may come after that request's answer.
        """
        sent = self.raw.taken_from(queue)
        return [each for each in sent if each["_context_request_id"] == self.request_id]

    def instance(self, uuid):
        with self.database.read() as connection:
            return instances.get(connection, uuid)

    def fault(self, uuid):
        with self.database.read() as connection:
            fault = server_rows.latest_faults(connection, [uuid]).get(uuid)
        return fault and fault.message


@pytest.fixture(scope="module")
def running(on_sqlite):
    settings = {
        "DEFAULT": {"host": "sched1", "service_down_time": 3600},
        "oslo_messaging_notifications": {"driver": "messagingv2"},
    }
    with on_sqlite(settings=settings) as deployment, deployment.database() as database:
        fleet.install(deployment.database_url)
        with database.write() as connection:
            for name, columns in TABLES_OF_NOVA.items():
                connection.execute(sa.text(f"CREATE TABLE {name} ({columns})"))
        yield deployment.start_scheduler().wait_ready(), database, deployment.transport_url


@pytest.fixture
def site(running):
    """That scheduler, with two new servers, running actions, and empty queues."""
    daemon, database, url = running
    own = recorded(RUN_INSTANCE)["args"]["request_spec"]["instance_properties"]
    request_id = f"req-{uuid4()}"
    with database.write() as connection:
        names = [*(each.name for each in metadata.sorted_tables), *TABLES_OF_NOVA]
        for table in (each for each in reversed(names) if each.startswith("instance")):
            connection.execute(sa.text(f"DELETE FROM {table}"))
        for uuid in UUIDS:
            values = {k: v for k, v in own.items() if k in objects.Instance.FIELDS}
            server_rows.create_instance(connection, objects.Instance(**{**values, "uuid": uuid}))
            names = "instance_uuid, request_id"
            new = f"INSERT INTO instance_actions ({names}) VALUES ('{uuid}', '{request_id}')"
            connection.execute(sa.text(new))
    with RawCaller(url) as raw:
        queues = [f"compute.{host}" for host in fleet.HOSTS]
        raw.collect([*queues, f"{EVENTS}.info", f"{EVENTS}.error"])
        yield Site(daemon, database, raw, request_id)


def casts(site):
    return [(h, each) for h in fleet.HOSTS for each in site.sent_to(f"compute.{h}")]


def told(site, priority="info"):
    return site.sent_to(f"{EVENTS}.{priority}")


def collected(site, function, count):
    """*count* messages, however long they take to arrive."""
    found = []

    def complete():
        found.extend(function(site))
        return len(found) >= count

    wait_until(complete, describe=lambda: f"{len(found)} of {count}: {found}")
    return found


def test_every_server_is_cast_to_a_host(site):
    site.cast(RUN_INSTANCE, filter_properties={"scheduler_hints": {}})
    sent = sorted(collected(site, casts, 2), key=lambda each: each[1]["args"]["instance"]["uuid"])

    theirs = recorded("derived-havana-compute-run_instance-v2.37.cast")
    for number, (host, message) in enumerate(sent):
        uuid = UUIDS[number]
        mine, known = message["args"], theirs["args"]
        assert (message["method"], message["version"]) == (theirs["method"], theirs["version"])
        assert mine.keys() == known.keys()
        assert mine["instance"]["uuid"] == uuid
        assert (mine["instance"]["host"], mine["node"]) == (None, host)
        assert mine["request_spec"].keys() == known["request_spec"].keys()
        assert mine["request_spec"]["instance_uuids"] == [uuid]
        assert mine["request_spec"]["instance_properties"]["launch_index"] == number
        properties = mine["filter_properties"]
        assert properties.keys() == known["filter_properties"].keys()
        assert properties["retry"] == {"num_attempts": 1, "hosts": [[host, host]]}
        assert set(properties["limits"]) == {"memory_mb", "disk_gb"}
        for name in ("admin_password", "injected_files", "is_first_time", "requested_networks"):
            assert mine[name] == known[name]
        assert mine["legacy_bdm_in_spec"] is False
        assert message["_context_remote_address"] == theirs["_context_remote_address"]
        assert message["_context_tenant"] == theirs["_context_tenant"]
    # Sent one after the other on pooled connections, among which the broker keeps no order.
    in_order = sorted(collected(site, told, 4), key=lambda each: each["timestamp"])
    events = [each["event_type"].rpartition(".")[2] for each in in_order]
    assert events == ["start", "scheduled", "scheduled", "end"]
    wait_until(lambda: results(site) == ["Success"] * 2, describe=lambda: str(results(site)))


def results(site):
    with site.database.read() as connection:
        query = sa.text("SELECT result FROM instance_actions_events")
        return list(connection.execute(query).scalars())


def test_as_many_are_built_as_fit_and_the_others_fail(site):
    """Unlike select_destinations, which is all or nothing."""
    request_spec = recorded(RUN_INSTANCE)["args"]["request_spec"]
    request_spec["instance_properties"]["availability_zone"] = fleet.ZONE
    hints = {"group": "web"}
    site.cast(RUN_INSTANCE, request_spec=request_spec, filter_properties={"scheduler_hints": hints})
    assert len({host for host, _message in collected(site, casts, 2)}) == 2, "they keep apart"
    with site.database.read() as connection:
        assert list(instances.homes_by_system_metadata(connection, "group", "web")) == UUIDS

    site.cast(
        RUN_INSTANCE,
        request_spec=request_spec,
        filter_properties={"scheduler_hints": {}, "ignore_hosts": list(fleet.HOSTS)},
    )
    failed = collected(site, lambda each: told(each, "error"), 2)
    assert [each["event_type"] for each in failed] == ["scheduler.run_instance"] * 2
    assert {each["payload"]["instance_id"] for each in failed} == set(UUIDS)
    assert {(each["payload"]["state"], each["payload"]["method"]) for each in failed} == {
        ("error", "run_instance")
    }
    for uuid in UUIDS:
        assert (site.instance(uuid).vm_state, site.instance(uuid).task_state) == ("error", None)
        assert (site.fault(uuid) or "").startswith("No valid host was found.")
        assert f"[instance: {uuid}] Setting instance to ERROR state." in site.daemon.log


def test_a_server_that_is_gone_holds_nobody_up(site):
    request_spec = recorded(RUN_INSTANCE)["args"]["request_spec"]
    site.cast(RUN_INSTANCE, request_spec={**request_spec, "instance_uuids": [GHOST, UUIDS[1]]})
    ((_host, message),) = collected(site, casts, 1)
    assert message["args"]["instance"]["uuid"] == UUIDS[1]
    assert f"Instance {GHOST} disappeared during scheduling" in site.daemon.log


def test_a_retry_goes_elsewhere(site):
    with site.database.write() as connection:
        instances.update(connection, UUIDS[0], host="cmp1", node="cmp1")
    retry = {"num_attempts": 1, "hosts": [["cmp1", "cmp1"], ["cmp2", "cmp2"]]}
    request_spec = recorded(RUN_INSTANCE)["args"]["request_spec"]
    site.cast(
        RUN_INSTANCE,
        request_spec={**request_spec, "instance_uuids": UUIDS[:1]},
        filter_properties={"retry": retry},
    )
    ((host, message),) = collected(site, casts, 1)
    assert host == "cmp3"
    assert (site.instance(UUIDS[0]).host, site.instance(UUIDS[0]).node) == (None, None)
    assert message["args"]["filter_properties"]["retry"] == {
        "num_attempts": 2,
        "hosts": [*retry["hosts"], ["cmp3", "cmp3"]],
    }


def test_prep_resize(site):
    site.cast(PREP_RESIZE)
    ((host, message),) = collected(site, casts, 1)
    sent = recorded(PREP_RESIZE)["args"]
    assert (message["method"], message["version"], host != "cmp1") == ("prep_resize", "2.43", True)
    mine = message["args"]
    assert {**mine, "request_spec": None, "filter_properties": None} == {
        **sent,
        "request_spec": None,
        "filter_properties": None,
        "node": host,
    }
    retry = mine["filter_properties"]["retry"]
    assert (retry["num_attempts"], retry["hosts"][-1]) == (2, [host, host])
    assert mine["request_spec"]["num_instances"] == 1


def test_prep_resize_without_a_host(site):
    site.cast(PREP_RESIZE, filter_properties={"ignore_hosts": list(fleet.HOSTS)})
    (failed,) = collected(site, lambda each: told(each, "error"), 1)
    assert failed["event_type"] == "scheduler.prep_resize"
    assert (failed["payload"]["state"], failed["payload"]["method"]) == ("active", "prep_resize")
    assert (site.instance(UUIDS[0]).vm_state, site.instance(UUIDS[0]).task_state) == (
        "active",
        None,
    )


@pytest.mark.parametrize("version", ["2.7", "3.0", "3.1"])
def test_select_destinations(site, version):
    request = recorded("derived-havana-select_destinations-v2.7.request")
    (chosen,) = site.raw.call({**request, "version": version})["result"]
    assert chosen["host"] in fleet.HOSTS
    assert chosen.keys() == {"host", "nodename", "limits"}


@pytest.mark.parametrize(("version", "is_refused"), [("2.7", True), ("3.0", False)])
def test_who_counts_the_attempts(site, version, is_refused):
    request = recorded("derived-havana-select_destinations-v2.7.request")
    request["args"]["filter_properties"] = {"retry": {"num_attempts": 3, "hosts": []}}
    reply = site.raw.call({**request, "version": version})
    assert bool(reply["failure"]) is is_refused
    if is_refused:
        assert failure_of(reply)["class"] == "NoValidHost"


@pytest.mark.parametrize("version", ["2.6", "3.0"])
def test_select_hosts(site, version):
    request = recorded("derived-havana-select_hosts-v2.6.request")
    reply = site.raw.call({**request, "version": version})
    known = recorded("derived-havana-select_hosts.reply")
    assert reply.keys() == known.keys()
    assert (reply["failure"], len(reply["result"])) == (None, len(known["result"]))
    assert set(reply["result"]) <= set(fleet.HOSTS)


def a_call(method, version, **args):
    request = recorded("derived-havana-select_hosts-v2.6.request")
    return {**request, "method": method, "version": version, "args": args}


def test_host_resources(site):
    with site.database.write() as connection:
        instances.update(connection, UUIDS[0], host="cmp1")
    reply = site.raw.call(a_call("show_host_resources", "2.0", host="cmp1"))
    assert reply["result"]["resource"]["memory_mb"] == fleet.MEMORY_MB
    project = recorded(RUN_INSTANCE)["_context_project_id"]
    assert reply["result"]["usage"] == {
        project: {"vcpus": 1, "memory_mb": 2048, "root_gb": 20, "ephemeral_gb": 0}
    }


BUILD = recorded(RUN_INSTANCE)["args"]


def servers(*uuids):
    return {**BUILD["request_spec"], "instance_uuids": list(uuids)}


#: Method, version, arguments, and the class of the error that is answered, if it is one.
OTHER_METHODS = [
    ("get_backdoor_port", "2.5", {}, None),
    ("create_volume", "2.3", {"volume_id": "v", "snapshot_id": None}, None),
    (
        "update_service_capabilities",
        "2.4",
        {"service_name": "compute", "host": "cmp1", "capabilities": [{"a": 1}, None]},
        None,
    ),
    ("live_migration", "2.0", {"instance": {}, "dest": "cmp1"}, "InvalidRequest"),
    ("show_host_resources", "2.0", {"host": "nowhere"}, "ComputeHostNotFound"),
    ("show_host_resources", "2.0", {"host": ["cmp1"]}, "InvalidRequest"),
    ("select_hosts", "2.6", {"request_spec": {}, "filter_properties": {}}, "InvalidRequest"),
    ("run_instance", "2.9", {**BUILD, "request_spec": servers("twice", "twice")}, "InvalidRequest"),
    ("run_instance", "2.9", {**BUILD, "request_spec": servers("\ud800")}, "InvalidRequest"),
    ("update_aggregates", "2.0", {}, "NoSuchMethod"),
    ("run_instance", "2.10", {}, "UnsupportedVersion"),
    ("run_instance", "3.2", {}, "UnsupportedVersion"),
    ("live_migration", "3.0", {}, "NoSuchMethod"),
]


@pytest.mark.parametrize(("method", "version", "args", "expected"), OTHER_METHODS)
def test_other_methods(site, method, version, args, expected):
    reply = site.raw.call(a_call(method, version, **args))
    if expected is None:
        assert (reply["failure"], reply["result"]) == (None, None)
    else:
        assert failure_of(reply)["class"] == expected


@pytest.mark.parametrize("fail_rate", ["0", "1"])
def test_hosts_build_what_is_cast_to_them_or_as_many_try_as_allowed(on_sqlite, fail_rate):
    message, own = recorded(RUN_INSTANCE), str(uuid4())
    arguments = message["args"]
    request, flavor = arguments["request_spec"], arguments["request_spec"]["instance_type"]
    request["instance_properties"].update(uuid=own, availability_zone=None)
    request.update(instance_uuids=[own], num_instances=1)
    values = {
        **{name: flavor[name] for name in ("memory_mb", "vcpus", "root_gb", "ephemeral_gb")},
        "uuid": own,
        "vm_state": "building",
        "task_state": "scheduling",
        "flavor": objects.Flavor.read_fields(flavor),
    }
    settings = {"DEFAULT": {"reserved_host_memory_mb": 0}}
    with on_sqlite(backend=THREADING, settings=settings) as made, made.database() as database:
        made.sync_database()
        computes = made.start_computes(4, "--build-seconds", "0", "--fail-rate", fail_rate)
        made.start_scheduler().wait_ready()
        computes.wait_ready()
        with database.write() as conn:
            server_rows.create_instance(conn, objects.Instance(**values))
        with RawCaller(made.transport_url) as raw:
            site = Site(made.daemons[-1], database, raw, f"req-{uuid4()}")
            site.cast(RUN_INSTANCE, **arguments)
            wait_until(lambda: site.instance(own).task_state is None, 60)
        assert site.instance(own).vm_state == ("active" if fail_rate == "0" else "error")
        fault = site.fault(own)
    assert ("Exceeded max scheduling attempts 3" in (fault or "")) is (fail_rate == "1")
