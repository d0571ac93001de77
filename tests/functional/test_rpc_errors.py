"""Whatever is wrong with a message, its sender is told if that is possible, and serving goes on.

Reference page rpc, sections 2, 5 and 10.
"""

import json
import urllib.parse
import uuid

import pytest

from tests.waiting import wait_until
from tests.world.bus import recorded
from tests.world.connection import enveloped, failure_of

# A caller that wants a sign of life every second, so that errors meet the library's monitor too.
GOOD = {**recorded("select_destinations-simple.request"), "_timeout": 2}
PING = recorded("baseapi-ping.request")
SPEC = GOOD["args"]["spec_obj"]

LIBRARY = "oslo_messaging.rpc.dispatcher"
OURS = "nova.exception"


# What is wrong → the message, the error's module and class, and what its text must name.  More:
# test_wire_samples, field by field, and the unit tests of the dispatcher, manager and objects.
REFUSED = {
    "unknown namespace": (
        {**GOOD, "namespace": "other"}, LIBRARY, "UnsupportedVersion", "4.5"),
    "an older call without an argument": (
        {"method": "select_hosts", "version": "2.6", "args": {"request_spec": {}}},
        OURS, "InvalidRequest", "filter_properties"),
    "another major version of an object": (
        {**GOOD, "args": {"spec_obj": {**SPEC, "nova_object.version": "2.0"}}},
        OURS, "IncompatibleObjectVersion", "2.0"),
}  # fmt: skip

# Bodies in which nobody can find out whom to answer.
UNREADABLE = (
    *((body, "application/json") for body in ("{not json", b"\xff\xfe\x00", "", "7", "[]")),
    ("[" * 100_000, "application/json"),
    ("7", "application/x-unknown"),
    (b"\x80\x04N.", "application/x-python-serialize"),
    ('{"some": "thing"}', "application/json"),
    (enveloped(GOOD, "3.0"), "application/json"),
    (enveloped(GOOD, "2.1"), "application/json"),
    ('{"oslo.version": "2.0", "oslo.message": "{"}', "application/json"),
    ('{"oslo.version": "2.0", "oslo.message": "[1]"}', "application/json"),
)


@pytest.fixture(autouse=True)
def good_call_afterwards(serving_scheduler, raw):
    """After every test of this module the same daemon answers a good call."""
    yield
    reply = raw.call(GOOD)
    assert (reply["failure"], len(reply["result"])) == (None, 1)
    assert serving_scheduler.daemon.exit_code is None


@pytest.mark.parametrize("what", REFUSED)
def test_the_caller_is_told_what_is_wrong(what, raw):
    message, module, name, told = REFUSED[what]
    reply = raw.call(message)
    failure = failure_of(reply)
    assert reply["result"] is None
    assert (failure["module"], failure["class"]) == (module, name)
    assert told in failure["message"]


def test_unreadable_bodies_are_passed_over_and_do_not_come_again(serving_scheduler, raw, rabbitmq):
    for body, content_type in UNREADABLE:
        raw.publish(body, content_type)
        assert raw.call(PING)["failure"] is None
    url = serving_scheduler.transport_url
    wait_until(lambda: waiting_messages(rabbitmq, url) == 0, 60, "an empty queue")


def waiting_messages(broker, transport_url):
    """Messages in the scheduler's queues, those delivered but not acknowledged included."""
    vhost = urllib.parse.urlsplit(transport_url).path.removeprefix("/")
    listed = broker.control("--formatter", "json", "list_queues", "-p", vhost, "name", "messages")
    queues = {queue["name"]: queue["messages"] for queue in json.loads(listed)}
    return sum(count for name, count in queues.items() if name.startswith("scheduler"))


def test_a_bare_message_is_read_as_old_senders_mean_it(raw):
    keys, without_method = raw.call_keys(), raw.call_keys()
    for message in ({**PING, **keys}, without_method):
        raw.publish(json.dumps(message))
    assert raw.answer_to(keys["_msg_id"])["result"]["arg"] == PING["args"]["arg"]
    failure = failure_of(raw.answer_to(without_method["_msg_id"]))
    assert failure["class"] == "InvalidRequest"


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "lzma"])
def test_a_compressed_message_is_read(raw, compression):
    keys = raw.call_keys()
    raw.publish(enveloped({**PING, **keys}), compression=compression)
    assert raw.answer_to(keys["_msg_id"])["result"]["arg"] == PING["args"]["arg"]


def test_a_cast_that_fails_is_only_logged(serving_scheduler, raw):
    cast = {"method": "delete_aggregate", "version": "4.1", "args": {"aggregate": "gone"}}
    raw.publish(enveloped({**cast, "_unique_id": uuid.uuid4().hex}))
    serving_scheduler.daemon.wait_log("Refused delete_aggregate: Invalid request: aggregate")
