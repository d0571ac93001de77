"""Reading the metadata that operators put on host aggregates.

Reference page filters, section 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler.hosts.candidates import Candidates
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

_OVERRIDE = np.dtype([("given", np.bool_), ("value", np.float64)])


def values(aggregates: Iterable[Any], key: str) -> set[str]:
    """Values of *key* over all *aggregates*, as they are."""
    return {aggregate.metadata[key] for aggregate in aggregates if key in aggregate.metadata}


def split_values(aggregates: Iterable[Any], key: str) -> set[str]:
    """Values of *key* over all *aggregates*, each split at commas and stripped.

    Empty when no aggregate has the key; an aggregate that has it empty gives ``{""}``.
    """
    return {part.strip() for value in values(aggregates, key) for part in value.split(",")}


def keys(aggregates: Iterable[Any]) -> list[str]:
    """Every key of the *aggregates*, sorted."""
    return sorted({key for aggregate in aggregates for key in aggregate.metadata})


def every_key(table: HostTable) -> frozenset[str]:
    """The keys that any host's aggregates have."""
    pool = table.pools["aggregates"]
    found: frozenset[str] = pool.derived("keys", lambda each: frozenset().union(*map(keys, each)))
    return found


def smallest(
    aggregates: Iterable[Any],
    key: str,
    cast: Callable[[str], float],
    complaint: str = "Could not decode %s: '%s'",
) -> float | None:
    """The smallest value of *key* as a number; None without any, or if *cast* refuses one of them.

    A refusal is logged as *complaint*, which is given key and error.
    """
    found = values(aggregates, key)
    if not found:
        return None
    if len(found) > 1:
        LOG.info("%d values found, of which the minimum value will be used.", len(found))
    try:
        return float(min(cast(value) for value in sorted(found)))
    except (ValueError, OverflowError) as error:
        LOG.warning(complaint, key, error)
        return None


def overridden(
    hosts: Candidates, key: str, cast: Callable[[str], float], otherwise: np.ndarray | float
) -> np.ndarray:
    """Per host the smallest value of *key* on its aggregates, else *otherwise*."""

    def read(aggregates: list[Any]) -> tuple[bool, float]:
        number = smallest(aggregates, key, cast)
        return number is not None, number or 0.0

    if key not in every_key(hosts.scope.table):
        return np.broadcast_to(otherwise, len(hosts))
    found = hosts.per_document("aggregates", read, _OVERRIDE, key=("override", key, cast))
    return np.where(found["given"], found["value"], otherwise)
