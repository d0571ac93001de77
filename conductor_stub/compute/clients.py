"""The clients of compute hosts: conductor, schedulers, other hosts, Placement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub.alternates import PlacementAlternates
from conductor_stub.claims import Release, nothing_to_release
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import ComputeTaskAPI, OlderSchedulerAPI
from conductor_stub.scheduler_rpcapi import SchedulerAPI
from scheduler import objects
from scheduler.claims import loading
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

Leave = Callable[[RequestContext, str, str], None]
"""``leave(context, instance_uuid, node_uuid)``."""


@dataclasses.dataclass(frozen=True)
class Clients:
    """Conductor, schedulers, other compute hosts, and schedulers of Havana's time.

    Where Placement keeps the claims, *release* gives back what an instance has there, and *leave*
    what it has on one node.
    """

    conductor: ComputeTaskAPI
    scheduler: SchedulerAPI
    compute: ComputeAPI
    older_scheduler: OlderSchedulerAPI
    release: Release = nothing_to_release
    leave: Leave | None = None

    @classmethod
    def over(cls, transport: messaging.Transport, conf: cfg.ConfigOpts) -> Clients:
        """All of them over one *transport*; raises ConfigurationError for ``[placement]``."""
        made = cls(
            ComputeTaskAPI(transport),
            SchedulerAPI(transport, conf),
            ComputeAPI(transport, conf),
            OlderSchedulerAPI(transport),
        )
        if conf.scheduler.claims != loading.PLACEMENT:
            return made
        allocations = PlacementAlternates.from_conf(conf)
        return dataclasses.replace(made, release=allocations.release, leave=allocations.leave)


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
