"""What compute hosts tell the schedulers about their instances: reference page conductor, 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import oslo_messaging as messaging
from oslo_log import log as logging

from scheduler import objects
from scheduler.rpc.client import SchedulerAPI
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


class Announcer:
    """Fanouts in an administrator's name.

    A lost one is not worth a failed build: the periodic synchronisation repairs the schedulers'
    view.  Nothing is sent where ``[filter_scheduler] track_instance_changes`` is off.
    """

    def __init__(self, scheduler: SchedulerAPI, enabled: bool) -> None:
        self._scheduler = scheduler
        self._enabled = enabled

    def present(
        self, context: RequestContext, host: str, instances: Sequence[objects.Instance]
    ) -> None:
        """These instances are on *host*: one that was built, or all when the host starts."""
        listed = objects.InstanceList(objects=list(instances))
        self._send(
            host,
            lambda: self._scheduler.update_instance_info(context.elevated(), host, listed),
        )

    def gone(self, context: RequestContext, host: str, uuid: str) -> None:
        """This instance is not on *host* any more."""
        self._send(
            host, lambda: self._scheduler.delete_instance_info(context.elevated(), host, uuid)
        )

    def list_of(self, context: RequestContext, host: str, uuids: Sequence[str]) -> None:
        """Exactly these instances are on *host*."""
        listed = list(uuids)
        self._send(
            host, lambda: self._scheduler.sync_instance_info(context.elevated(), host, listed)
        )

    def _send(self, host: str, send: Callable[[], None]) -> None:
        if not self._enabled:
            return
        try:
            send()
        except messaging.MessagingException as error:
            LOG.warning("The schedulers were not told about the instances of %s: %s", host, error)
