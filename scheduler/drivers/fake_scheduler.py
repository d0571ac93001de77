"""A driver that places nothing, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler import objects
from scheduler.drivers.base import Scheduler


class FakeScheduler(Scheduler):
    """Always answers with an empty list."""

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
        """An empty list, whatever is asked."""
        del context, spec_obj, instance_uuids, alloc_reqs_by_rp_uuid, provider_summaries
        del allocation_request_version, return_alternates
        return []
