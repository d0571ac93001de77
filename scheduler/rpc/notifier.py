"""Legacy notifications (reference page rpc, section 13)."""

from __future__ import annotations

from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging

from scheduler.rpc.serializer import NotificationSerializer, RequestContextSerializer

LOG = logging.getLogger(__name__)

VERSIONED_ONLY: Final = "versioned"


class Notifier:
    """Sends notifications under one publisher id, such as ``scheduler.<host>``.

    Nothing is sent unless ``[oslo_messaging_notifications] driver`` names a driver and
    ``[notifications] notification_format`` includes the legacy form.  A notification that
    cannot be sent is logged and never fails the request it tells about.
    """

    def __init__(
        self, transport: oslo_messaging.transport.NotificationTransport, publisher_id: str
    ) -> None:
        self._notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=publisher_id,
            serializer=RequestContextSerializer(NotificationSerializer()),
        )
        conf = transport.conf
        self.enabled = bool(
            conf.oslo_messaging_notifications.driver
            and conf.notifications.notification_format != VERSIONED_ONLY
        )
        """Whether anything is sent: when false the payload need not be built."""

    def info(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Tell of *event_type* with priority INFO."""
        self._send(self._notifier.info, context, event_type, payload)

    def error(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Tell of *event_type* with priority ERROR."""
        self._send(self._notifier.error, context, event_type, payload)

    def _send(self, send: Any, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        if not self.enabled:
            return
        try:
            send(context, event_type, payload)
        except Exception:
            LOG.exception("The notification %s could not be sent", event_type)
