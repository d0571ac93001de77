"""The bases of the filters that let hosts promise more than they have."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scheduler.filters.base import HostFilter
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.host_state import HostState


class OvercommitFilter(HostFilter):
    """Base of the filters under an allocation ratio, by default that of the host itself."""

    #: The column of the hosts' own ratios.
    ratio_column: ClassVar[str]

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """Ratio by which each host's resource may be handed out."""
        ratios: np.ndarray = getattr(hosts, self.ratio_column)
        return ratios

    def ratio_of(self, host_state: HostState) -> float:
        """The same of one host."""
        if type(self).ratio is OvercommitFilter.ratio:
            return float(getattr(host_state, self.ratio_column))
        return float(self.ratio(Candidates.alone(host_state))[0])


class AggregateOvercommitFilter(OvercommitFilter):
    """Base of those in which the ratio of the host's aggregates goes before its own."""

    def ratio(self, hosts: Candidates) -> np.ndarray:
        """The smallest ratio that an aggregate of the host names, else the host's."""
        return hosts.overridden(self.ratio_column, float, super().ratio(hosts))
