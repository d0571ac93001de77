"""Nova's functions for filters that read aggregate metadata (reference page filters, 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from oslo_log import log as logging

from scheduler.hosts import aggregate_metadata

LOG = logging.getLogger(__name__)


def aggregate_values_from_key(host_state: Any, key_name: str) -> set[str]:
    """The values of *key_name* over all aggregates of the host, as they are."""
    return aggregate_metadata.values(host_state.aggregates, key_name)


def aggregate_metadata_get_by_host(host_state: Any, key: str | None = None) -> dict[str, set[str]]:
    """Every key of the host's aggregates with its values, split at commas and stripped.

    With *key*, only of the aggregates that have it.
    """
    chosen = [each for each in host_state.aggregates if key is None or key in each.metadata]
    names = aggregate_metadata.keys(chosen)
    return {name: aggregate_metadata.split_values(chosen, name) for name in names}


def validate_num_values(
    vals: Collection[str],
    default: Any = None,
    cast_to: Callable[[str], Any] = int,
    based_on: Callable[[Iterable[Any]], Any] = min,
) -> Any:
    """The smallest of *vals* as a number (or what *based_on* takes); *default* without any.

    Raises ValueError if one of them is no number.
    """
    if not vals:
        return default
    if len(vals) > 1:
        which = "maximum" if based_on is max else "minimum"
        LOG.info("%d values found, of which the %s value will be used.", len(vals), which)
    return based_on(cast_to(value) for value in vals)
