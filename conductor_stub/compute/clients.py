"""Whom compute hosts talk to."""

from __future__ import annotations

import dataclasses

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.scheduler_rpcapi import OlderSchedulerAPI
from scheduler.rpc.client import SchedulerAPI


@dataclasses.dataclass(frozen=True)
class Clients:
    """Conductor, schedulers, other compute hosts, and schedulers of Havana's time."""

    conductor: ComputeTaskAPI
    scheduler: SchedulerAPI
    compute: ComputeAPI
    older_scheduler: OlderSchedulerAPI

    @classmethod
    def over(cls, transport: messaging.Transport, conf: cfg.ConfigOpts) -> Clients:
        """All of them over one *transport*."""
        return cls(
            ComputeTaskAPI(transport),
            SchedulerAPI(transport, conf),
            ComputeAPI(transport, conf),
            OlderSchedulerAPI(transport),
        )
