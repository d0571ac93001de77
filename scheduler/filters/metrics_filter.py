"""MetricsFilter: the host reports every metric that counts.  Reference page filters, 6.23."""

from collections.abc import Iterator
from typing import Any

from scheduler.conf.filter_scheduler import parse_ratios
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

MISSING = Reason("metrics.missing", "the host lacks a metric that the weights need")


class MetricsFilter(HostFilter):
    """Passes hosts that report all metrics of ``[metrics] weight_setting``."""

    is_rule = False
    reasons = (MISSING,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        settings = parse_ratios(conf.metrics.weight_setting, "metrics.weight_setting")
        self.names = frozenset(name for name, _ratio in settings)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        if self.names:
            yield (
                MISSING,
                hosts.per_document(
                    "metrics", lambda found: self.names <= {m.name for m in found}, key=self
                ),
            )
