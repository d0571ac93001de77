"""What the filter driver was told, as one thing that is exchanged as a whole.

A decision takes its settings once, under the decision lock: it never sees half of a reload.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

from scheduler import semantics
from scheduler.drivers.json_options import JsonOptions
from scheduler.drivers.selections import Templates
from scheduler.engine.evaluation import FilterChain, Policy
from scheduler.filters.registry import load_filters
from scheduler.hosts.fitting import Fitting
from scheduler.weights.registry import load_weighers


@dataclass(frozen=True, slots=True)
class Settings:
    """How to choose, and what follows from that."""

    policy: Policy
    json_options: JsonOptions
    max_attempts: int
    zone_if_none: str
    #: What answers were made from before.
    templates: Templates = field(default_factory=Templates, compare=False)

    @classmethod
    def from_conf(cls, conf: Any, host_manager: Any) -> Settings:
        """Everything loaded and built; raises errors that name the option."""
        policy = configured_policy(conf, host_manager)
        json_options = JsonOptions(conf.scheduler_json_config_location, host_manager.clock)
        return cls(
            policy,
            json_options,
            conf.scheduler.max_attempts,
            conf.default_availability_zone,
        )

    def config_options(self) -> dict[str, Any]:
        """What filters and weighers find in ``config_options`` of one request; no file is read."""
        own: dict[str, Any] = copy.deepcopy(self.json_options.known)
        return own


def configured_policy(conf: Any, host_manager: Any) -> Policy:
    """How to choose, with filters and weighers loaded; raises errors that name the option."""
    return Policy(
        chain=FilterChain(load_filters(conf, host_manager.option_of_filters(conf))),
        weighers=load_weighers(conf),
        host_subset_size=conf.filter_scheduler.host_subset_size,
        shuffle_best_same_weighed_hosts=conf.filter_scheduler.shuffle_best_same_weighed_hosts,
        service_down_time_seconds=conf.service_down_time,
        semantics=semantics.of(conf),
        fitting=Fitting.from_conf(conf),
        most_seconds=conf.scheduler.max_decision_seconds or math.inf,
    )
