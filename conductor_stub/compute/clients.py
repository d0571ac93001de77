"""Whom compute hosts talk to."""

from __future__ import annotations

import dataclasses

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub.claims import Release, nothing_to_release
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.scheduler_rpcapi import OlderSchedulerAPI
from scheduler.claims import backend
from scheduler.claims.placement.alternates import PlacementAlternates
from scheduler.rpc.client import SchedulerAPI


@dataclasses.dataclass(frozen=True)
class Clients:
    """Conductor, schedulers, other compute hosts, and schedulers of Havana's time.

    *release* gives back what is booked in Placement for an instance that is not on its host.
    """

    conductor: ComputeTaskAPI
    scheduler: SchedulerAPI
    compute: ComputeAPI
    older_scheduler: OlderSchedulerAPI
    release: Release = nothing_to_release

    @classmethod
    def over(cls, transport: messaging.Transport, conf: cfg.ConfigOpts) -> Clients:
        """All of them over one *transport*; raises ConfigurationError for ``[placement]``."""
        uses_placement = conf.scheduler.claims == backend.PLACEMENT
        return cls(
            ComputeTaskAPI(transport),
            SchedulerAPI(transport, conf),
            ComputeAPI(transport, conf),
            OlderSchedulerAPI(transport),
            PlacementAlternates.from_conf(conf).release if uses_placement else nothing_to_release,
        )
