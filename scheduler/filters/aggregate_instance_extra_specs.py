"""AggregateInstanceExtraSpecsFilter: the flavor's extra specs, asked of the host's aggregates.

Reference page filters, section 6.13; operators: section 5.4.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.filters import extra_specs_ops
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

MISSING = Reason("aggregate_specs.missing", "no aggregate of the host has what an extra spec names")
REFUSED = Reason("aggregate_specs.refused", "no aggregate of the host satisfies an extra spec")

_SCOPE = "aggregate_instance_extra_specs"


class _Verdict(enum.IntEnum):
    MET = 0
    MISSING = 1
    REFUSED = 2


class AggregateInstanceExtraSpecsFilter(HostFilter):
    """Passes hosts whose aggregates satisfy every extra spec that is unscoped or has our scope."""

    run_filter_once_per_request = True
    reasons = (MISSING, REFUSED)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """One value of each key named satisfies its requirement, on whichever aggregate.

        Raises InvalidRequest where an operator cannot compare what it is given.
        """
        if demands := _demands(request):
            verdicts = hosts.per_document(
                "aggregates",
                lambda a: _judge(a, demands),
                np.int8,
                key=("extra specs", tuple(demands)),
            )
            yield MISSING, verdicts != _Verdict.MISSING
            yield REFUSED, verdicts != _Verdict.REFUSED


def _demands(request: Any) -> list[tuple[str, str]]:
    named = [(_name_of(key), requirement) for key, requirement in extra_specs_of(request).items()]
    return [(name, requirement) for name, requirement in named if name is not None]


def _name_of(key: str) -> str | None:
    """The metadata key that an extra spec means; None if it is not ours to judge."""
    scope, colon, rest = key.partition(":")
    if not colon:
        return key
    return rest if scope == _SCOPE else None


def _judge(aggregates: list[Any], demands: list[tuple[str, str]]) -> _Verdict:
    for name, requirement in demands:
        values = aggregate_metadata.split_values(aggregates, name)
        if not values:
            return _Verdict.MISSING
        try:
            met = any(extra_specs_ops.match(value, requirement) for value in sorted(values))
        except ValueError as error:
            field = f"flavor.extra_specs.{name}"
            raise errors.InvalidRequest(field=field, reason=str(error)) from error
        if not met:
            return _Verdict.REFUSED
    return _Verdict.MET
