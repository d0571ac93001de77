"""The two senders of notifications (reference page rpc, section 13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import oslo_messaging
from oslo_messaging.transport import NotificationTransport

from scheduler.notifications.outbox import Outbox
from scheduler.rpc.serializer import NotificationSerializer, RequestContextSerializer

UNVERSIONED: Final = "unversioned"
VERSIONED: Final = "versioned"


class Notifier:
    """Sends notifications of one form, under one publisher id, through an outbox.

    Nothing is sent unless ``[oslo_messaging_notifications] driver`` names a driver and
    ``[notifications] notification_format`` includes the form.  Whether and when the bus takes a
    notification is nothing to whoever tells of something: neither an error nor a bus that does
    not answer reaches the caller.
    """

    form = UNVERSIONED
    serializer: Callable[[], oslo_messaging.NoOpSerializer] = NotificationSerializer

    def __init__(
        self,
        transport: NotificationTransport,
        publisher_id: str,
        outbox: Outbox | None = None,
    ) -> None:
        conf = transport.conf
        self._notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=publisher_id,
            serializer=RequestContextSerializer(self.serializer()),
            topics=self._topics(conf),
        )
        self._outbox = outbox or Outbox(conf.notifications.max_waiting)
        self.enabled = bool(
            conf.oslo_messaging_notifications.driver
            and conf.notifications.notification_format in (self.form, "both")
        )
        """Whether anything is sent: when false the payload need not be built."""

    @staticmethod
    def _topics(_conf: Any) -> list[str] | None:
        """None: those of ``[oslo_messaging_notifications] topics``."""
        return None

    def info(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Tell of *event_type* with priority INFO; *payload* is not to change any more."""
        self._send(self._notifier.info, context, event_type, payload)

    def error(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Tell of *event_type* with priority ERROR; *payload* is not to change any more."""
        self._send(self._notifier.error, context, event_type, payload)

    def close(self) -> None:
        """Send what waits, for as long as the outbox allows."""
        self._outbox.close()

    def _send(self, send: Any, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        if self.enabled:
            self._outbox.put(event_type, lambda: send(context, event_type, payload))


class VersionedNotifier(Notifier):
    """Sends payloads in envelopes, to topics of their own."""

    form = VERSIONED
    serializer = oslo_messaging.NoOpSerializer

    @staticmethod
    def _topics(conf: Any) -> list[str] | None:
        topics: list[str] = conf.notifications.versioned_notifications_topics
        return topics
