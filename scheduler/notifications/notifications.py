"""What this family of services tells, in whichever forms are wanted (page rpc, section 13)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from oslo_log import log as logging
from oslo_messaging.transport import NotificationTransport

from scheduler import objects
from scheduler.notifications import payloads, unsent
from scheduler.notifications.notifier import Notifier, VersionedNotifier
from scheduler.notifications.outbox import Outbox

LOG = logging.getLogger(__name__)

SELECT: Final = "scheduler.select_destinations"


class Notifications:
    """The notifications of one service on *host*.

    *service* is its name in the unversioned form, such as ``scheduler``; *source* that in the
    versioned form, such as ``nova-scheduler``.
    """

    def __init__(
        self, transport: NotificationTransport, service: str, source: str, host: str
    ) -> None:
        unsent.install()
        self.outbox = Outbox(transport.conf.notifications.max_waiting)
        self.legacy = Notifier(transport, f"{service}.{host}", self.outbox)
        self.versioned = VersionedNotifier(transport, f"{source}:{host}", self.outbox)

    @property
    def enabled(self) -> bool:
        """Whether anything is sent."""
        return self.legacy.enabled or self.versioned.enabled

    def select_destinations(self, context: Any, phase: str, spec: objects.RequestSpec) -> None:
        """Tell that hosts are looked for (*phase* ``start``), or have been found (``end``)."""
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
        """Tell that *task*, such as ``compute_task.build_instances``, ended with *error*.

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
        self.legacy.close()


@contextlib.contextmanager
def _never_failing(event: str) -> Iterator[None]:
    """Within it, a payload that cannot be made of what came is logged and not sent."""
    try:
        yield
    except Exception:
        LOG.exception("The notification %s could not be made", event)
