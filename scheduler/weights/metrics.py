"""MetricsWeigher: the metrics that hosts report, each with its ratio (sections 7.3 and 7.6)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.conf.filter_scheduler import parse_ratios
from scheduler.hosts.candidates import Candidates
from scheduler.weights.base import HostWeigher


class MetricsWeigher(HostWeigher):
    """The sum of value times ratio over the metrics of ``[metrics] weight_setting``."""

    multiplier_option = "metrics_weight_multiplier"

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        options = conf.metrics
        self.settings = parse_ratios(options.weight_setting, "metrics.weight_setting")
        self.required = options.required
        self.weight_of_unavailable = options.weight_of_unavailable

    def configured_multiplier(self, conf: Any) -> float:
        return float(conf.metrics.weight_multiplier)

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Raises ComputeHostMetricNotFound for a metric that is required and that a host lacks.

        So does one that a host reports with several values instead of one.
        """
        for name, _ratio in self.settings:
            self._refuse(name, hosts)
        counting = hosts.per_document("metrics", self._value(weighs=True), np.float64, key=self)
        multipliers = self.multipliers(hosts)
        if not isinstance(multipliers, np.ndarray) and multipliers != 0:
            return counting
        idle = np.broadcast_to(np.asarray(multipliers) == 0, len(hosts))
        if not idle.any():
            return counting
        idling = hosts.per_document(
            "metrics", self._value(weighs=False), np.float64, key=(self, "idle")
        )
        return np.where(idle, idling, counting)

    def _refuse(self, name: str, hosts: Candidates) -> None:
        def lacks(found: Any) -> bool:
            values = _values(found)
            return values[name] is None if name in values else self.required

        lacking = hosts.per_document("metrics", lacks, key=(self, name))
        if lacking.any():
            first = hosts.take(lacking).states()[0]
            raise errors.ComputeHostMetricNotFound(name=name, host=first.host, node=first.nodename)

    def _value(self, *, weighs: bool) -> Callable[[Any], float]:
        """Reader of a host's metrics; one that is missing does not matter if nothing *weighs*."""

        def read(found: Any) -> float:
            values, total = _values(found), 0.0
            for name, ratio in self.settings:
                if name in values:
                    total += values[name] * ratio
                elif weighs and ratio:
                    return self.weight_of_unavailable
            return total

        return read


def _values(found: Iterable[Any]) -> dict[str, int]:
    """Value by name; None for a metric that has several values instead of one."""
    return {metric.name: metric.value for metric in found}
