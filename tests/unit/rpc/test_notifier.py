"""Notifications, as oslo.messaging's own test driver keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging.notify import _impl_test

from scheduler import objects
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from scheduler.rpc.notifier import Notifier

CONTEXT = RequestContext("u", "p", auth_token="secret", overwrite=False)
EVENT = "scheduler.select_destinations.start"


@pytest.fixture
def notification_transport(conf: cfg.ConfigOpts) -> Iterator[Any]:
    made = bus.get_notification_transport(conf)
    yield made
    made.cleanup()
    conf.clear_override("driver", group="oslo_messaging_notifications")
    conf.clear_override("notification_format", group="notifications")
    _impl_test.reset()


def a_notifier(transport: Any, driver: list[str], form: str = "unversioned") -> Notifier:
    conf = transport.conf
    conf.set_override("driver", driver, group="oslo_messaging_notifications")
    conf.set_override("notification_format", form, group="notifications")
    return Notifier(transport, "scheduler.sched1")


@pytest.mark.parametrize(("method", "priority"), [("info", "INFO"), ("error", "ERROR")])
def test_what_is_sent(notification_transport: Any, method: str, priority: str) -> None:
    notifier = a_notifier(notification_transport, ["test"])

    getattr(notifier, method)(CONTEXT, EVENT, {"flavor": objects.Flavor(name="m1.tiny")})

    ((context, message, sent_priority, _retry),) = _impl_test.NOTIFICATIONS
    assert sent_priority == priority
    assert message["publisher_id"] == "scheduler.sched1"
    assert (message["event_type"], message["priority"]) == (EVENT, priority)
    assert message["payload"] == {"flavor": {"name": "m1.tiny"}}
    assert (context["request_id"], context["auth_token"]) == (CONTEXT.request_id, None)


@pytest.mark.parametrize(
    ("driver", "form"), [([], "unversioned"), (["test"], "versioned")], ids=["off", "versioned"]
)
def test_nothing_is_sent(notification_transport: Any, driver: list[str], form: str) -> None:
    notifier = a_notifier(notification_transport, driver, form)

    notifier.info(CONTEXT, EVENT, {})

    assert not notifier.enabled
    assert _impl_test.NOTIFICATIONS == []


def test_payload_that_cannot_be_sent_fails_nothing(
    notification_transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = a_notifier(notification_transport, ["test"])
    payload: dict[str, Any] = {}
    payload["itself"] = payload

    notifier.info(CONTEXT, EVENT, payload)

    assert EVENT in caplog.text
    assert _impl_test.NOTIFICATIONS == []


def test_transport_is_one_for_notifications(notification_transport: Any) -> None:
    assert isinstance(notification_transport, oslo_messaging.transport.NotificationTransport)
