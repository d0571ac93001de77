"""The settings of the filter driver: one value, which a reload replaces as a whole.

A decision takes its settings once, under the decision lock: it never sees half of a reload.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import objects, semantics
from scheduler.engine.evaluation import FilterChain, Policy
from scheduler.filters.registry import load_filters
from scheduler.hosts.consumption import Fitting
from scheduler.weights.registry import load_weighers

LOG = logging.getLogger(__name__)

#: Seconds between two looks at the file of options.
CHECK_SECONDS = 300


class JsonOptions:
    """Options for third-party filters and weighers from the JSON file at *path*, if any.

    Scheduling page, section 12.  *clock* gives seconds.  ``known`` is the content when it was read
    last; while the file cannot be read, that is what counts.
    """

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self.path = path
        self.known: Any = {}
        self._clock = clock
        self._checked_at: float | None = None
        self._modified_at = -math.inf

    def current(self) -> Any:
        """The content as of at most five minutes ago; empty if it is no JSON."""
        now = self._clock()
        # A clock that was set back must not put off the next check.
        is_new = self._checked_at is not None and 0 <= now - self._checked_at < CHECK_SECONDS
        if self.path and not is_new:
            self._checked_at = now
            LOG.debug("Start to check scheduler configuration file at: %s", self.path)
            self._read()
        return self.known

    def _read(self) -> None:
        try:
            modified_at = os.stat(self.path).st_mtime
            if modified_at <= self._modified_at:
                return
            LOG.debug("Loading scheduler options file %s", self.path)
            with open(self.path, "rb") as file:
                text = file.read()
        except OSError:
            LOG.exception("Could not stat scheduler options file %s", self.path)
            return
        self._modified_at = modified_at
        try:
            self.known = json.loads(text) or {}
        except (ValueError, RecursionError):
            LOG.exception("Could not decode scheduler options")
            self.known = {}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to choose, and what follows from that."""

    policy: Policy
    json_options: JsonOptions
    max_attempts: int
    zone_if_none: str

    @classmethod
    def from_conf(cls, conf: Any, host_manager: Any) -> Settings:
        """Everything loaded and built; raises errors that name the option."""
        return cls(
            configured_policy(conf, host_manager),
            JsonOptions(conf.scheduler_json_config_location, host_manager.clock),
            conf.scheduler.max_attempts,
            conf.default_availability_zone,
        )

    def own_spec(self, spec: objects.RequestSpec) -> objects.RequestSpec:
        """A copy of *spec* for one decision, which changes it; no file is read."""
        own = spec.copy()
        own.config_options = copy.deepcopy(self.json_options.known)
        return own


def configured_policy(conf: Any, host_manager: Any) -> Policy:
    """How to choose, with filters and weighers loaded; raises errors that name the option."""
    return Policy(
        chain=FilterChain(load_filters(conf, host_manager.option_of_filters(conf))),
        weighers=load_weighers(conf),
        host_subset_size=conf.filter_scheduler.host_subset_size,
        shuffle_best_same_weighed_hosts=conf.filter_scheduler.shuffle_best_same_weighed_hosts,
        service_down_time_seconds=conf.service_down_time,
        semantics=semantics.from_conf(conf),
        fitting=Fitting.from_conf(conf),
        most_seconds=conf.scheduler.max_decision_seconds or math.inf,
    )
