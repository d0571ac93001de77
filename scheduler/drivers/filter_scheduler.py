"""The filter driver: fresh state for every request, filters, weighers, the best host.

Reference page scheduling, section 2.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from scheduler import objects, semantics
from scheduler.drivers.attempt import DriverAttempt, Request
from scheduler.drivers.base import Scheduler
from scheduler.drivers.json_options import JsonOptions
from scheduler.drivers.pipeline import Policy
from scheduler.explain.record import DecisionRecord
from scheduler.filters.registry import load_chain
from scheduler.hosts.fitting import Fitting
from scheduler.standing import StandingResults
from scheduler.weights.registry import load_weighers


def configured_policy(conf: Any, host_manager: Any) -> Policy:
    """How to choose, with filters and weighers loaded; raises errors that name the option."""
    return Policy(
        chain=load_chain(conf, host_manager.filters_option),
        weighers=load_weighers(conf),
        host_subset_size=conf.filter_scheduler.host_subset_size,
        shuffle_best_same_weighed_hosts=conf.filter_scheduler.shuffle_best_same_weighed_hosts,
        service_down_time_seconds=conf.service_down_time,
        semantics=semantics.of(conf),
        fitting=Fitting.from_conf(conf),
    )


def standing_results(conf: Any, host_manager: Any, policy: Policy) -> StandingResults | None:
    """Where results are kept between decisions; None if they are not to be."""
    limit_bytes = conf.scheduler.standing_results_bytes
    if not limit_bytes:
        return None
    return StandingResults(
        host_manager.books.table,
        policy.chain.filters,
        policy.weighers,
        policy.semantics,
        policy.service_down_time_seconds,
        limit_bytes,
    )


class FilterScheduler(Scheduler):
    """Places instances on the best hosts that pass every filter."""

    tells_of_selections = True
    CLAIMS_HOSTS = True

    def __init__(self, conf: Any, host_manager: Any) -> None:
        super().__init__(conf, host_manager)
        self.policy = configured_policy(conf, host_manager)
        self.results = standing_results(conf, host_manager, self.policy)
        self.json_options = JsonOptions(conf.scheduler_json_config_location, host_manager.clock)
        self.max_attempts = conf.scheduler.max_attempts
        self.zone_if_none = conf.default_availability_zone

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
        alternates = self.max_attempts - 1 if return_alternates else 0
        with self.recorder.decision(type(self).__name__, context, spec_obj, uuids) as record:
            options, zone = copy.deepcopy(self.json_options.current()), self.zone_if_none
            request = Request(context, spec_obj, uuids, count, alternates, zone, options)
            return self.booking.answer(self._attempt(request, record))

    def run_periodic_tasks(self, context: Any) -> None:
        """See which claims are over, also when nobody asks for hosts."""
        del context
        if self.booking.needs_regular_looks:
            self.host_manager.refresh()

    def bring_state_up_to_date(self) -> None:
        """Make sure that the state is not older than this request."""
        self.host_manager.refresh()

    def _attempt(self, request: Request, record: DecisionRecord) -> DriverAttempt:
        return DriverAttempt(
            request,
            self.host_manager,
            self.policy,
            record,
            self.watcher,
            self.bring_state_up_to_date,
            self.results,
        )
