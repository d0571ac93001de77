"""Whom compute hosts talk to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub.claims import Release, nothing_to_release
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.scheduler_rpcapi import OlderSchedulerAPI
from scheduler.claims import backend
from scheduler.claims.placement.alternates import PlacementAlternates
from scheduler.rpc.client import SchedulerAPI
from scheduler.rpc.context import RequestContext

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
        if conf.scheduler.claims != backend.PLACEMENT:
            return made
        allocations = PlacementAlternates.from_conf(conf)
        return dataclasses.replace(made, release=allocations.release, leave=allocations.leave)
