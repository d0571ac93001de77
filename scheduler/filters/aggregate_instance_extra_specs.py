"""AggregateInstanceExtraSpecsFilter: aggregates with extra specs.  Page filters, 5.4 and 6.13."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.filters import extra_specs_ops
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.filters.host_attributes import Verdict
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

MISSING = Reason("aggregate_specs.missing", "no aggregate of the host has what an extra spec names")
REFUSED = Reason("aggregate_specs.refused", "no aggregate of the host satisfies an extra spec")

_SCOPE = "aggregate_instance_extra_specs:"


class AggregateInstanceExtraSpecsFilter(HostFilter):
    """Passes hosts whose aggregates satisfy every extra spec that is unscoped or has our scope."""

    run_filter_once_per_request = True
    reasons = (MISSING, REFUSED)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Compare each requirement with the values of its key, on whichever aggregate.

        Raises InvalidRequest where an operator cannot compare what it is given.
        """
        if demands := demands_of(request):
            verdicts = hosts.per_document(
                "aggregates",
                lambda each: _judge(each, demands),
                np.int8,
                key=("extra specs", demands),
            )
            yield MISSING, verdicts != Verdict.MISSING
            yield REFUSED, verdicts != Verdict.REFUSED


def demands_of(request: Any) -> tuple[tuple[str, str], ...]:
    """Metadata keys and requirements: the extra specs that are unscoped or have our scope.

    A key may be there in both ways.
    """
    return tuple(
        (key.removeprefix(_SCOPE), requirement)
        for key, requirement in extra_specs_of(request).items()
        if ":" not in key or key.startswith(_SCOPE)
    )


def _judge(aggregates: list[Any], demands: tuple[tuple[str, str], ...]) -> Verdict:
    for name, requirement in demands:
        values = aggregate_metadata.split_values(aggregates, name)
        if not values:
            return Verdict.MISSING
        with errors.as_invalid(f"flavor.extra_specs.{name}", ValueError):
            met = any(extra_specs_ops.match(value, requirement) for value in sorted(values))
        if not met:
            return Verdict.REFUSED
    return Verdict.MET
