"""Notifications, as oslo.messaging's own test driver keeps them."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg
from oslo_messaging.notify import _impl_test

from scheduler import errors, objects
from scheduler.notifications.notifier import LIBRARY_LOGGER, Notifications
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request
from tests.process_options import on_in_process_bus

CONTEXT = RequestContext("u", "p", auth_token="secret", overwrite=False)
EVENT = "scheduler.select_destinations.start"


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, with the in-process bus."""
    yield on_in_process_bus(tmp_path)
    cfg.CONF.reset()


@pytest.fixture
def notification_transport(conf: cfg.ConfigOpts) -> Iterator[Any]:
    made = bus.get_notification_transport(conf)
    yield made
    made.cleanup()
    conf.clear_override("driver", group="oslo_messaging_notifications")
    for name in ("notification_format", "versioned_notifications_topics"):
        conf.clear_override(name, group="notifications")
    _impl_test.reset()


def the_notifications(
    transport: Any, form: str, driver: tuple[str, ...] = ("test",), **options: Any
) -> Notifications:
    conf = transport.conf
    conf.set_override("driver", list(driver), group="oslo_messaging_notifications")
    for name, value in {"notification_format": form, **options}.items():
        conf.set_override(name, value, group="notifications")
    return Notifications(transport, "scheduler", "nova-scheduler", "sched1")


@pytest.mark.parametrize(("method", "priority"), [("info", "INFO"), ("error", "ERROR")])
def test_what_is_sent(
    notification_transport: Any, caplog: pytest.LogCaptureFixture, method: str, priority: str
) -> None:
    notifier = the_notifications(notification_transport, "unversioned").legacy
    endless: dict[str, Any] = {}
    endless["itself"] = endless
    notifier.info(CONTEXT, "cannot.be.sent", endless)
    getattr(notifier, method)(CONTEXT, EVENT, {"flavor": objects.Flavor(name="m1.tiny")})
    notifier.close()
    ((context, message, sent_priority, _retry),) = _impl_test.NOTIFICATIONS
    assert sent_priority == priority
    assert message["publisher_id"] == "scheduler.sched1"
    assert (message["event_type"], message["priority"]) == (EVENT, priority)
    assert message["payload"] == {"flavor": {"name": "m1.tiny"}}
    assert (context["request_id"], context["auth_token"]) == (CONTEXT.request_id, None)
    assert "cannot.be.sent" in caplog.text


@pytest.mark.parametrize(
    ("driver", "form"), [((), "unversioned"), (("test",), "versioned")], ids=["off", "versioned"]
)
def test_nothing_is_sent(notification_transport: Any, driver: tuple[str, ...], form: str) -> None:
    notifier = the_notifications(notification_transport, form, driver).legacy
    notifier.info(CONTEXT, EVENT, {})
    assert not notifier.enabled
    assert _impl_test.NOTIFICATIONS == []


SPEC, TOPICS = a_request(), ["a", "b"]
FORMS = {
    "unversioned": [("notifications", "scheduler.sched1", "request_spec")],
    "versioned": [(topic, "nova-scheduler:sched1", "nova_object.data") for topic in TOPICS],
}
FORMS["both"] = FORMS["unversioned"] + FORMS["versioned"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any], str]]:
    """Topics, messages and priorities, in order; the test driver does not keep the topics."""
    sent: list[tuple[str, dict[str, Any], str]] = []

    class Keeping(_impl_test.TestDriver):
        def notify(self, ctxt: Any, message: Any, priority: str, retry: Any) -> None:
            sent.extend((topic, message, priority) for topic in self.topics)

    monkeypatch.setattr(_impl_test.TestDriver, "notify", Keeping.notify)
    return sent


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_one_event_and_of_one_that_cannot_be_told(
    notification_transport: Any, sent: Any, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    notifications = the_notifications(
        notification_transport, form, versioned_notifications_topics=TOPICS
    )
    notifications.select_destinations(CONTEXT, "start", object())  # type: ignore[arg-type]
    notifications.select_destinations(CONTEXT, "end", SPEC)
    notifications.close()

    told = [(topic, message["publisher_id"]) for topic, message, _priority in sent]
    assert told == [(topic, publisher) for topic, publisher, _key in FORMS[form]]
    for (_topic, message, priority), (_, _, key) in zip(sent, FORMS[form], strict=True):
        assert (message["event_type"], priority) == ("scheduler.select_destinations.end", "INFO")
        assert key in message["payload"]
    assert "scheduler.select_destinations.start could not be made" in caplog.text


def test_a_failed_task_is_told_in_both_forms(notification_transport: Any, sent: Any) -> None:
    notifications = the_notifications(notification_transport, "both")
    task, error = "compute_task.build_instances", errors.NoValidHost(reason="")
    notifications.task_failed(CONTEXT, task, OWN_UUID, {}, SPEC, error)
    notifications.close()
    assert [message["event_type"] for _topic, message, _priority in sent] == [task, f"{task}.error"]
    assert {priority for _topic, _message, priority in sent} == {"ERROR"}
    assert sent[0][1]["payload"]["method"] == "build_instances"


def test_what_cannot_be_sent_is_logged_without_its_payload(
    notification_transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
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
