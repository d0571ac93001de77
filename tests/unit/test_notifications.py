"""Notifications, as oslo.messaging's own test driver keeps them."""

import logging
import threading

import pytest
from oslo_messaging.notify import _impl_test

from conductor_stub import server_rows
from conductor_stub.failures import Failures
from scheduler import errors, objects
from scheduler.notifications import LIBRARY_LOGGER, Notifications, Outbox
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request
from tests.process_options import on_in_process_bus

CONTEXT = RequestContext("u", "p", auth_token="secret", overwrite=False)
EVENT = "scheduler.select_destinations.start"


@pytest.fixture
def notification_transport(tmp_path):
    """That of the in-process bus, with the process-wide options."""
    conf = on_in_process_bus(tmp_path)
    made = bus.get_notification_transport(conf)
    yield made
    made.cleanup()
    conf.clear_override("driver", group="oslo_messaging_notifications")
    for name in ("notification_format", "versioned_notifications_topics"):
        conf.clear_override(name, group="notifications")
    conf.reset()
    _impl_test.reset()


def the_notifications(transport, form, driver=("test",), **options):
    conf = transport.conf
    conf.set_override("driver", list(driver), group="oslo_messaging_notifications")
    for name, value in {"notification_format": form, **options}.items():
        conf.set_override(name, value, group="notifications")
    return Notifications(transport, "scheduler", "nova-scheduler", "sched1")


def test_what_is_sent(notification_transport, caplog):
    sender = the_notifications(notification_transport, "unversioned")
    endless = {}
    endless["itself"] = endless
    sender.legacy.info(CONTEXT, "cannot.be.sent", endless)
    sender.legacy.info(CONTEXT, EVENT, {"flavor": objects.Flavor(name="m1.tiny")})
    sender.close()
    ((context, message, priority, _retry),) = _impl_test.NOTIFICATIONS
    assert (message["event_type"], message["priority"], priority) == (EVENT, "INFO", "INFO")
    assert message["payload"] == {"flavor": {"name": "m1.tiny"}}
    assert (context["request_id"], context["auth_token"]) == (CONTEXT.request_id, None)
    assert "cannot.be.sent" in caplog.text


@pytest.mark.parametrize(
    ("driver", "form"), [((), "unversioned"), (("test",), "versioned")], ids=["off", "versioned"]
)
def test_nothing_is_sent(notification_transport, driver, form):
    notifier = the_notifications(notification_transport, form, driver).legacy
    notifier.info(CONTEXT, EVENT, {})
    assert not notifier.enabled
    assert _impl_test.NOTIFICATIONS == []


SPEC, SERVER, TOPICS = a_request(), objects.Instance(uuid=OWN_UUID), ["a", "b"]
TASK, ERROR = "compute_task.build_instances", errors.NoValidHost(reason="")
#: A call, the events of both forms, their priority, and a key of the unversioned payload.
CALLS = {
    "hosts are looked for": (
        lambda sender, _database: sender.select_destinations(CONTEXT, "start", SPEC),
        *(EVENT, EVENT, "INFO", "request_spec"),
    ),
    "a task failed": (
        lambda sender, database: Failures(database, sender, "ctl").end_build(
            CONTEXT, SERVER, ERROR, {}, 1, SPEC
        ),
        *(TASK, f"{TASK}.error", "ERROR", "method"),
    ),
}


@pytest.mark.parametrize("form", ["unversioned", "versioned", "both"])
@pytest.mark.parametrize("name", CALLS)
def test_forms_of_one_event_and_of_one_that_cannot_be_told(
    database, notification_transport, monkeypatch, caplog, name, form
):
    sent = []
    call, event, versioned, priority, key = CALLS[name]

    def keep(driver, _context, message, sent_as, _retry):
        found = message["publisher_id"], message["event_type"], sent_as, key in message["payload"]
        sent.extend((topic, *found) for topic in driver.topics)  # its own list has no topics

    monkeypatch.setattr(_impl_test.TestDriver, "notify", keep)
    sender = the_notifications(notification_transport, form, versioned_notifications_topics=TOPICS)
    sender.select_destinations(CONTEXT, "end", object())
    with database.write() as conn:
        server_rows.create_instance(conn, SERVER.copy())
    call(sender, database)
    sender.close()
    first = [("notifications", "scheduler.sched1", event, priority, True)]
    second = [(topic, "nova-scheduler:sched1", versioned, priority, False) for topic in TOPICS]
    assert sent == first * (form != "versioned") + second * (form != "unversioned")
    assert "scheduler.select_destinations.end could not be made" in caplog.text


def test_what_cannot_be_sent_is_logged_without_its_payload(notification_transport, caplog):
    the_notifications(notification_transport, "both")
    the_notifications(notification_transport, "both")
    message = {"event_type": "a.b", "message_id": "1", "payload": {"user_data": "hidden"}}
    logging.getLogger(LIBRARY_LOGGER).error(
        "Could not send notification to %(topic)s. Payload=%(message)s",
        {"topic": "notifications", "message": message},
    )
    logging.getLogger(LIBRARY_LOGGER).error("another %s", "line")
    assert "Could not send notification to notifications" in caplog.text
    assert "a.b" in caplog.text
    assert "another line" in caplog.text
    assert "hidden" not in caplog.text


# --- the outbox: nobody waits for a bus ------------------------------------------------


def test_in_order_past_an_error_and_all_before_the_end(caplog):
    sent = []
    outbox = Outbox(10)
    outbox.put("compute.fails", lambda: [][0])
    for number in range(5):
        outbox.put("event", lambda number=number: sent.append(number))
    outbox.close()
    assert sent == [0, 1, 2, 3, 4]
    assert "compute.fails could not be sent" in caplog.text


def test_a_bus_that_takes_nothing_for_a_while(caplog):
    taken, blocked, done = threading.Event(), threading.Event(), threading.Event()
    outbox = Outbox(2)
    outbox.put("first", lambda: (taken.set(), blocked.wait()))
    assert taken.wait(60)
    for number in range(5):
        outbox.put(f"event{number}", done.set)
    assert (outbox.waiting, outbox.dropped) == (2, 3)
    assert caplog.text.count("are dropped") == 1, "said once, not for each"
    blocked.set()
    assert done.wait(60)
    while outbox.waiting:
        done.wait(0.01)
    outbox.put("third", lambda: None)
    assert "3 notifications were dropped" in caplog.text
    outbox.close()


def test_the_end_waits_for_no_bus(caplog):
    Outbox(1).close()
    taken, blocked = threading.Event(), threading.Event()
    outbox = Outbox(2)
    for _ in range(2):
        outbox.put("event", lambda: (taken.set(), blocked.wait()))
        assert taken.wait(60)
    outbox.close(0.01)
    assert "notifications could not be sent in time" in caplog.text
    blocked.set()
