"""Bases of the filters with a bound that aggregates may set: an overcommit ratio, or a maximum."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState


def for_aggregates(reasons: tuple[Reason, ...]) -> Any:
    """The same *reasons* under the codes of the filter that asks aggregates first."""
    return tuple(Reason(f"aggregate_{each.code}", each.text) for each in reasons)


class OvercommitFilter(HostFilter):
    """Base of the filters under an allocation ratio, by default that of the host itself."""

    #: The column of the hosts' own ratios.
    ratio_column: ClassVar[str]

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """Ratio by which each host's resource may be handed out."""
        ratios: np.ndarray = getattr(hosts, self.ratio_column)
        return ratios

    def ratio_of(self, host_state: HostState) -> float:
        if type(self).ratio is OvercommitFilter.ratio:
            return float(getattr(host_state, self.ratio_column))
        return float(self.ratio(Candidates.alone(host_state))[0])


class AggregateOvercommitFilter(OvercommitFilter):
    """Base of those in which the ratio of the host's aggregates goes before its own."""

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """The smallest ratio that an aggregate of the host names, else the host's."""
        return hosts.overridden(self.ratio_column, float, super().ratio(hosts))


class MaximumFilter(HostFilter):
    """Base of the filters under a maximum, by default that of an option."""

    #: The column that stays below the maximum.
    column: ClassVar[str]
    maximum_option: ClassVar[str]

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.configured_maximum = conf.filter_scheduler[self.maximum_option]

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Below the maximum before this server is added."""
        del request
        yield self.reasons[0], getattr(hosts, self.column) < self.maximum(hosts)

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The maximum of all *hosts*, or one per host."""
        del hosts
        limit: float = self.configured_maximum
        return limit


class AggregateMaximumFilter(MaximumFilter):
    """Base of those in which the maximum of the host's aggregates goes before the option."""

    def maximum(self, hosts: Candidates) -> np.ndarray | float:
        """The smallest maximum that an aggregate of the host names, else the option's."""
        return hosts.overridden(self.maximum_option, int, super().maximum(hosts))
