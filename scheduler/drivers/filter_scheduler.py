"""The filter driver: fresh state for every request, filters, weighers, the best host.

Reference page scheduling, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scheduler import objects
from scheduler.drivers.attempt import DriverAttempt, Request
from scheduler.drivers.base import Scheduler
from scheduler.drivers.settings import Settings
from scheduler.explain.record import DecisionRecord


class FilterScheduler(Scheduler):
    """Places instances on the best hosts that pass every filter."""

    tells_of_selections = True
    CLAIMS_HOSTS = True

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.settings = Settings.from_conf(conf, host_manager)

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
        """See the base class.  The request object given is not changed."""
        del alloc_reqs_by_rp_uuid, provider_summaries, allocation_request_version
        uuids = tuple(instance_uuids or ())
        count = len(uuids) or spec_obj.num_instances
        request = Request(context, spec_obj, uuids, count, return_alternates)
        with self.recorder.decision(type(self).__name__, context, spec_obj, uuids) as record:
            self.settings.json_options.current()
            return self._attempt(request, record).answer(self.booking)

    def run_periodic_tasks(self, context: Any) -> None:
        """See which claims are over, also when nobody asks for hosts."""
        del context
        if self.booking.needs_regular_looks:
            self.host_manager.refresh()

    def reconfigured(self, conf: Any) -> Callable[[], None]:
        """See the base class.  What was kept between decisions goes with the old policy."""
        settings = Settings.from_conf(conf, self.host_manager)
        settings.json_options.current()
        take_base = super().reconfigured(conf)

        def take() -> None:
            take_base()
            self.settings = settings

        return take

    def bring_state_up_to_date(self) -> None:
        """Make sure that the state is not older than this request."""
        self.host_manager.refresh()

    def _attempt(self, request: Request, record: DecisionRecord) -> DriverAttempt:
        return DriverAttempt(
            request,
            self.host_manager,
            lambda: self.settings,
            record,
            self.watcher,
            self.bring_state_up_to_date,
        )
