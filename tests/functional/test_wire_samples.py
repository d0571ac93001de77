"""Recorded requests over a real broker get what the recorded scheduler answered, field by field.

The scheduler here has the hosts of the recording and the filters of its release.  It has no
Placement, so what Placement adds to a Selection is the only difference.
"""

import json
import re
import time
import uuid
from pathlib import Path

import pytest

from scheduler import objects
from scheduler.concurrency import EVENTLET
from tests.functional.conftest import ServingScheduler
from tests.functional.slow_filter import PAUSE_HINT
from tests.unit.objects.wire_samples import comparable
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.bus import WIRE, recorded
from tests.world.connection import RawCaller, failure_of
from tests.world.process import BACKENDS

#: What a caller sees while a request takes long depends on the back end, all else does not.
ONE_BACKEND = pytest.mark.parametrize("recorded_scheduler", [EVENTLET], indirect=True)

FILTERS = (
    "AvailabilityZoneFilter", "ComputeFilter", "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
    "NUMATopologyFilter", "PciPassthroughFilter", "PausingFilter",
)  # fmt: skip
CELL = "d3b0b9ab-43c5-4d6e-8f26-5b1de4a2b8e1"
DATA = "nova_object.data"
OF_PLACEMENT = ("allocation_request", "allocation_request_version")
EVENTS = ("notifications.info", "versioned_notifications.info")

PAIRS = {
    "select_destinations-simple.request": "select_destinations-simple.reply",
    "select_destinations-multi3.request": "select_destinations-multi3.reply",
    "select_destinations-force_host.request": "select_destinations-force_host.reply",
    "select_destinations-rich.request": "select_destinations-rich.reply",
    "select_destinations-objects_false.request": "select_destinations-objects_false.reply",
    "select_destinations-v4.0.request": "select_destinations-v4.0.reply",
    "select_destinations-v4.3-rich.request": "select_destinations-v4.3-rich.reply",
    "select_destinations-v4.4.request": "select_destinations-v4.4.reply",
}


def _numa_topology():
    cells = [
        objects.NUMACell(
            id=number,
            cpuset=set(),
            pcpuset=set(range(4 * number, 4 * number + 4)),
            memory=8192,
            siblings=[],
            mempages=[objects.NUMAPagesTopology(size_kb=2048, total=4096)],
        )
        for number in range(2)
    ]
    return objects.NUMATopology(cells=cells).to_text()


POOL = {"vendor_id": "8086", "product_id": "154d", "dev_type": "type-VF", "numa_node": 0}


def install(database_url):
    """The hosts of the recording: two cells of four dedicated CPUs, huge pages, devices."""
    columns = {
        "numa_topology": _numa_topology(),
        "pci_stats": json.dumps([{**POOL, "count": 100}]),
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.0,
    }
    fleet.install(database_url, **columns)
    for number, host in enumerate(fleet.HOSTS, 1):
        own = {"uuid": f"c000000{number}-aaaa-4bbb-8ccc-00000000000{number}", "host": host}
        databases.query(
            database_url, "UPDATE compute_nodes SET uuid = :uuid WHERE host = :host", **own
        )


@pytest.fixture(scope="module", params=BACKENDS)
def recorded_scheduler(request, on_sqlite):
    """A scheduler as the recorded one was configured."""
    settings = {
        "DEFAULT": {"host": "sched1", "service_down_time": 3600},
        "scheduler": {"cell_uuid": CELL},
        "filter_scheduler": {
            "available_filters": [
                "nova.scheduler.filters.all_filters",
                "slow_filter.PausingFilter",
            ],
            "enabled_filters": ",".join(FILTERS),
        },
        "oslo_messaging_notifications": {"driver": "messagingv2"},
        "notifications": {"notification_format": "both"},
    }
    with on_sqlite(backend=request.param, settings=settings) as deployment:
        install(deployment.database_url)
        found = {"PYTHONPATH": str(Path(__file__).parent)}
        daemon = deployment.start_scheduler(extra_environment=found).wait_ready()
        yield ServingScheduler(daemon, deployment.transport_url)


@pytest.fixture
def caller(recorded_scheduler):
    """Writes messages to that scheduler by hand."""
    with RawCaller(recorded_scheduler.transport_url) as raw:
        yield raw


def fresh(name):
    """The recorded message as a request of its own."""
    return {**recorded(name), "_context_request_id": f"req-{uuid.uuid4()}"}


@pytest.fixture(scope="module", autouse=True)
def replies(recorded_scheduler):
    """Replies to the recorded requests, before any other uses up a host."""
    with RawCaller(recorded_scheduler.transport_url) as raw:
        return {name: raw.call(fresh(name)) for name in PAIRS}


@ONE_BACKEND
@pytest.mark.parametrize("name", PAIRS)
def test_replies_field_by_field(replies, name):
    theirs = recorded(PAIRS[name])
    ours = replies[name]
    assert ours.keys() == theirs.keys()
    assert (ours["failure"], ours["ending"]) == (theirs["failure"], theirs["ending"])
    assert _amounts(ours["result"]) == _amounts(theirs["result"])
    known = {_host(each): each for each in _flat(theirs["result"])}
    for each in _flat(ours["result"]):
        like = known.get(_host(each)) or _moved(next(iter(known.values())), _host(each))
        assert comparable(_without_placement(each)) == comparable(_without_placement(like))


def _amounts(result):
    return [len(each) if isinstance(each, list) else 1 for each in result]


def _flat(result):
    return [s for each in result for s in (each if isinstance(each, list) else [each])]


def _host(chosen):
    return str(chosen[DATA]["service_host"] if DATA in chosen else chosen["host"])


def _moved(chosen, host):
    """The recorded dict as it would be for another of the two equal hosts of the zone."""
    assert host in fleet.ZONE_HOSTS
    assert DATA not in chosen
    return {**chosen, "host": host, "nodename": host}


def _without_placement(chosen):
    if DATA not in chosen:
        return chosen
    assert set(OF_PLACEMENT) <= chosen[DATA].keys()
    return {**chosen, DATA: {k: v for k, v in chosen[DATA].items() if k not in OF_PLACEMENT}}


@ONE_BACKEND
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("error-no_such_method.reply", {"method": "run_instance", "version": "4.0"}),
        ("error-unsupported_version.reply", {"version": "4.6"}),
        ("error-type_error.reply", {"args": {"bogus": 1}}),
        ("error-no_valid_host.reply", {"ignored": fleet.HOSTS}),
    ],
)
def test_errors_field_by_field(caller, name, changes):
    request = fresh("select_destinations-simple.request")
    changes = dict(changes)
    request["args"]["spec_obj"][DATA]["ignore_hosts"] = list(changes.pop("ignored", ()))
    request.update(changes)
    reply = caller.call(request)
    theirs = json.loads(recorded(name)["failure"])
    ours = failure_of(reply)
    assert reply.keys() == recorded(name).keys()
    assert {**ours, "tb": None} == {**theirs, "tb": None}
    assert ours["tb"][-1] == theirs["tb"][-1]


@ONE_BACKEND
def test_the_raw_body(caller):
    text = json.loads((WIRE / "envelope-raw-example.json").read_text())["amqp_body_text"]
    message = json.loads(json.loads(text)["oslo.message"])
    own = caller.call_keys()
    for key, value in own.items():
        text = text.replace(message[key], value)
    caller.publish(text)
    assert caller.answer_to(own["_msg_id"])["result"] == {"service": "scheduler", "arg": "hello"}


@ONE_BACKEND
@pytest.mark.parametrize("kind", ["simple", "rich"])
def test_notifications_in_both_forms(caller, kind):
    """Of a request that fails no end is told."""
    caller.collect(EVENTS)
    request, refused = (fresh(f"select_destinations-{kind}.request") for _number in range(2))
    refused["args"]["spec_obj"][DATA]["ignore_hosts"] = list(fleet.HOSTS)
    failure_of(caller.call(refused))
    caller.call(request)
    events = {refused["_context_request_id"]: ["start"]}
    events[request["_context_request_id"]] = ["start", "end"]
    told = {queue: [] for queue in EVENTS}

    def complete():
        for queue, messages in told.items():  # those of earlier requests may still be coming in
            new = caller.taken_from(queue)
            messages.extend(each for each in new if each["_context_request_id"] in events)
        return all(len(messages) >= 3 for messages in told.values())

    wait_until(complete, describe=lambda: str(told))
    for queue, form in zip(EVENTS, ("legacy", "versioned"), strict=True):
        theirs = recorded(f"notification-{form}-{kind}-start")
        # Sent one after the other on pooled connections, among which the broker keeps no order.
        in_order = sorted(told[queue], key=lambda m: m["timestamp"])
        for request_id, expected in events.items():
            own = [each for each in in_order if each["_context_request_id"] == request_id]
            assert [m["event_type"].rpartition(".")[2] for m in own] == expected
        for message in in_order:
            assert theirs.keys() <= message.keys()
            assert message["payload"].keys() == theirs["payload"].keys()
            assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", message["timestamp"])
            secrets = message["_context_auth_token"], message["_context_service_catalog"]
            assert secrets == (None, [])
            context = ("user_id", "project_id", "roles", "user_name", "user_identity")
            for key in ("publisher_id", "priority", *(f"_context_{name}" for name in context)):
                assert message[key] == theirs[key]


def test_a_slow_request_shows_that_it_lives(caller):
    """Heartbeats every half of the caller's time, then the reply (page rpc, section 6)."""
    sequence = json.loads((WIRE / "call_monitor-heartbeat.sequence.json").read_text())["sequence"]
    asked, *beats, answer = [each["message"] for each in sequence]
    request = {**fresh("select_destinations-simple.request"), "_timeout": asked["_timeout"]}
    hints = request["args"]["spec_obj"][DATA]["scheduler_hints"]
    hints[PAUSE_HINT] = ["3"]  # for each of the two hosts of the zone

    began = time.monotonic()
    call_id = caller.send(request)
    reply = caller.answer_to(call_id)

    seen = [each for each in caller.received if each["_msg_id"] == call_id]
    assert time.monotonic() - began > asked["_timeout"]
    # As many as recorded or, where the machine is slow, more.
    assert len(seen) > len(beats)
    for ours in seen[:-1]:
        assert ours.keys() == beats[0].keys()
        assert (ours["result"], ours["failure"], ours["ending"]) == (None, None, False)
    assert reply.keys() == answer.keys()
    assert (reply["failure"], reply["ending"]) == (None, True)
    assert len(reply["result"][0]) == 2


@ONE_BACKEND
def test_what_is_on_the_broker(recorded_scheduler, rabbitmq, caller):
    """Queues, exchanges and bindings, with their arguments (page rpc, section 9)."""
    vhost = recorded_scheduler.transport_url.rpartition("/")[2]
    caller.collect([])
    caller.call(fresh("select_destinations-simple.request"))
    theirs = json.loads((WIRE / "rabbit-topology.json").read_text())

    def listed(what, *columns):
        text = rabbitmq.control("-p", vhost, f"list_{what}", *columns, "--formatter", "json")
        return [{key: _text(value) for key, value in each.items()} for each in json.loads(text)]

    wait_until(lambda: {"name": "notifications.info"} in listed("queues", "name"))
    for what, keys in (
        ("queues", ("name", "durable", "auto_delete", "arguments", "consumers")),
        ("exchanges", ("name", "type", "durable", "auto_delete")),
        ("bindings", ("source_name", "destination_name", "routing_key")),
    ):
        ours = [_anonymous(each) for each in listed(what, *keys)]
        for each in theirs[what]:
            if "reply_" in str(each):
                continue  # the recorded client's own; the caller here is not oslo.messaging
            assert _anonymous(each) in ours, each


def _text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(sorted(value.items() if isinstance(value, dict) else value))
    return str(value)


def _anonymous(each):
    """Without what is random in names, and with arguments in one spelling."""
    values = {key: re.sub(r"_[0-9a-f]{32}", "_*", str(value)) for key, value in each.items()}
    if "arguments" in values:
        words = re.findall(r"[\w-]+", values["arguments"])
        values["arguments"] = " ".join(word for word in words if "signedint" not in word)
    return values
