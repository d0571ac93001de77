"""The senders of notifications, in whichever forms are wanted (reference page rpc, section 13)."""

import contextlib
import logging as standard_logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging
from oslo_messaging.transport import NotificationTransport

from scheduler import objects
from scheduler.notifications import payloads
from scheduler.rpc.context import NotificationSerializer, RequestContextSerializer
from scheduler.threads import BatchThread

LOG = logging.getLogger(__name__)

UNVERSIONED: Final = "unversioned"
VERSIONED: Final = "versioned"
SELECT: Final = "scheduler.select_destinations"
LIBRARY_LOGGER: Final = "oslo_messaging.notify.messaging"
CLOSE_SECONDS: Final = 5.0
"""Longest wait of the process's end for what was not sent yet."""
LOGGED: Final = ("message_id", "event_type", "publisher_id")


class Outbox:
    """At most *limit* notifications wait here; what comes on top is dropped, and counted."""

    def __init__(self, limit: int) -> None:
        # Its thread starts with the first one, thus after the workers have been forked.
        self._thread = BatchThread("notifications", _send_all, limit, batch=1)
        self.dropped = 0
        """Number of sends dropped so far."""
        self._dropped_in_a_row = 0

    @property
    def waiting(self) -> int:
        """Number of sends not done yet."""
        return self._thread.waiting

    def put(self, event_type: str, send: Callable[[], None]) -> None:
        """Have *send* called soon; never waits, never raises."""
        if not self._thread.put((event_type, send)):
            if not self._dropped_in_a_row:
                text = "Notifications are dropped, %s first: the bus takes none, and %d are waiting"
                LOG.warning(text, event_type, self.waiting)
            self.dropped += 1
            self._dropped_in_a_row += 1
        elif self._dropped_in_a_row:
            LOG.warning("%d notifications were dropped", self._dropped_in_a_row)
            self._dropped_in_a_row = 0

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most *timeout_seconds*; the rest is lost, with a warning."""
        if left := self._thread.close(timeout_seconds):
            LOG.warning("%d notifications could not be sent in time", left)


def _send_all(batch: list[tuple[str, Callable[[], None]]]) -> None:
    for event_type, send in batch:
        try:
            send()
        except Exception:
            LOG.exception("The notification %s could not be sent", event_type)


class Notifier:
    """Sends notifications of one *form*, under one publisher id, through an outbox.

    Nothing is sent unless ``[oslo_messaging_notifications] driver`` names a driver and
    ``[notifications] notification_format`` includes the form.  Versioned payloads are envelopes
    and go to topics of their own.  Neither an error nor a bus that does not answer reaches the
    caller.
    """

    def __init__(
        self,
        transport: NotificationTransport,
        publisher_id: str,
        outbox: Outbox | None = None,
        form: str = UNVERSIONED,
    ) -> None:
        conf = transport.conf
        entities, topics = NotificationSerializer(), None
        if form == VERSIONED:
            entities = oslo_messaging.NoOpSerializer()
            topics = conf.notifications.versioned_notifications_topics
        self._notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=publisher_id,
            serializer=RequestContextSerializer(entities),
            topics=topics,
        )
        self._outbox = outbox or Outbox(conf.notifications.max_waiting)
        self.enabled = bool(
            conf.oslo_messaging_notifications.driver
            and conf.notifications.notification_format in (form, "both")
        )
        """True when anything is sent: when false the payload need not be built."""

    def info(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Notify of *event_type* with priority INFO; *payload* is not to change any more."""
        self._send(self._notifier.info, context, event_type, payload)

    def error(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Notify of *event_type* with priority ERROR; *payload* is not to change any more."""
        self._send(self._notifier.error, context, event_type, payload)

    def _send(self, send: Any, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        if self.enabled:
            self._outbox.put(event_type, lambda: send(context, event_type, payload))


class Notifications:
    """The notifications of one service on *host*, in both forms.

    *service* is its name in the unversioned form, such as ``scheduler``; *source* that in the
    versioned form, such as ``nova-scheduler``.
    """

    def __init__(
        self, transport: NotificationTransport, service: str, source: str, host: str
    ) -> None:
        standard_logging.getLogger(LIBRARY_LOGGER).addFilter(without_payload)
        self.outbox = Outbox(transport.conf.notifications.max_waiting)
        self.legacy = Notifier(transport, f"{service}.{host}", self.outbox)
        self.versioned = Notifier(transport, f"{source}:{host}", self.outbox, VERSIONED)

    @property
    def enabled(self) -> bool:
        """True when anything is sent."""
        return self.legacy.enabled or self.versioned.enabled

    def select_destinations(self, context: Any, phase: str, spec: objects.RequestSpec) -> None:
        """Hosts are looked for (*phase* ``start``), or have been found (``end``)."""
        event = f"{SELECT}.{phase}"
        with _never_failing(event):
            if self.legacy.enabled:
                self.legacy.info(context, event, payloads.legacy_request(spec))
            if self.versioned.enabled:
                self.versioned.info(context, event, payloads.request(spec))

    def task_failed(
        self,
        context: Any,
        task: str,
        instance_uuid: str,
        legacy_spec: Mapping[str, Any],
        spec: objects.RequestSpec | None,
        error: BaseException,
        state: str = "error",
    ) -> None:
        """A *task*, such as ``compute_task.build_instances``, ended with *error*.

        *state* is what the server is left in.  The versioned event is named like the task with
        ``.error`` behind it.
        """
        method = task.rpartition(".")[2]
        with _never_failing(task):
            if self.legacy.enabled:
                payload = payloads.legacy_failure(legacy_spec, instance_uuid, method, error, state)
                self.legacy.error(context, task, payload)
            if self.versioned.enabled:
                payload = payloads.compute_task(instance_uuid, spec, state, error)
                self.versioned.error(context, f"{task}.error", payload)

    def close(self) -> None:
        """Send what waits, for as long as the outbox allows."""
        self.outbox.close()


@contextlib.contextmanager
def _never_failing(event: str) -> Iterator[None]:
    """Within it, a payload that cannot be made of what came is logged and not sent."""
    try:
        yield
    except Exception:
        LOG.exception("The notification %s could not be made", event)


def without_payload(record: standard_logging.LogRecord) -> bool:
    """Cut an unsent notification in *record* to its ids: it may have passwords and user data."""
    arguments: Any = record.args
    if isinstance(arguments, dict) and isinstance(arguments.get("message"), dict):
        message = arguments["message"]
        record.args = {**arguments, "message": {name: message.get(name) for name in LOGGED}}
    return True
