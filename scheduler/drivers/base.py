"""What a driver is (reference page scheduling, section 1.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from scheduler import objects
from scheduler.explain.record import DecisionRecord
from scheduler.explain.watcher import Watcher

#: How many of the latest decision records a driver keeps.
RECORDS_KEPT = 256


class Scheduler:
    """Base of every driver: a host manager, the hosts that are up, no periodic task."""

    def __init__(self, conf: Any, host_manager: Any) -> None:
        self.conf = conf
        self.host_manager = host_manager
        self.watcher = Watcher()
        self.records: deque[DecisionRecord] = deque(maxlen=RECORDS_KEPT)

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
        """Per instance a list of Selections: the chosen host, then its alternates.

        Raises NoValidHost when not every instance gets a host.
        """
        raise NotImplementedError("Driver must implement select_destinations")

    def run_periodic_tasks(self, context: Any) -> None:
        """Called every ``[scheduler] periodic_task_interval`` seconds."""

    def hosts_up(self, context: Any, topic: str) -> list[str]:
        """Names of the hosts whose service on *topic* is enabled and alive."""
        del context
        names: list[str] = self.host_manager.hosts_up(topic)
        return names
