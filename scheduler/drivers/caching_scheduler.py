"""The caching driver: the filter driver on state that a periodic task refreshes.

Reference page scheduling, section 3.  Liveness is judged at decision time from the last heartbeat
that was read, so keep the period below ``service_down_time`` minus ``report_interval``.
"""

from __future__ import annotations

from typing import Any

from scheduler.drivers.filter_scheduler import FilterScheduler


class CachingScheduler(FilterScheduler):
    """Decides from memory; the state may be one period old."""

    USES_ALLOCATION_CANDIDATES = False

    def run_periodic_tasks(self, context: Any) -> None:
        """Read the state of the hosts."""
        del context
        self.host_manager.refresh()

    def bring_state_up_to_date(self, arrived_at: float | None) -> None:
        """Read the state only if it was never read; it may not be old because reads fail."""
        if self.host_manager.read_at is None:
            self.host_manager.refresh(arrived_at)
        self.host_manager.require_state()
        self.claims.read_new()
