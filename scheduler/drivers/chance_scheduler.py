"""The chance driver: any host that is up (reference page scheduling, section 4)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from scheduler import errors, objects
from scheduler.drivers.base import Scheduler


class ChanceScheduler(Scheduler):
    """Draws hosts at random among those up and not ignored; looks at nothing else."""

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.rng = random.SystemRandom()

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        alloc_reqs_by_rp_uuid: Any = None,
        provider_summaries: Any = None,
        allocation_request_version: str | None = None,
        return_alternates: bool = False,
    ) -> list[list[objects.Selection]]:
        """See the base class.  There are never alternates, limits or nodes."""
        del alloc_reqs_by_rp_uuid, provider_summaries, allocation_request_version
        del return_alternates
        count = len(instance_uuids or ()) or spec_obj.num_instances
        hosts = self.hosts_up(context, "compute") if count else []
        if count and not hosts:
            raise errors.NoValidHost(reason="Is the appropriate service running?")
        ignored = set(spec_obj.ignore_hosts or ())
        hosts = [host for host in hosts if host not in ignored]
        if count and not hosts:
            raise errors.NoValidHost(reason="Could not find another compute")
        return [[self._selection(self.rng.choice(hosts))] for _ in range(count)]
