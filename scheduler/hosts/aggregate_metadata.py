"""Reading the metadata that operators put on host aggregates (page filters, 5.3)."""

from collections.abc import Callable, Iterable
from typing import Any

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def values(aggregates: Iterable[Any], key: str) -> set[str]:
    """Values of *key* over all *aggregates*, as they are."""
    return {aggregate.metadata[key] for aggregate in aggregates if key in aggregate.metadata}


def split_values(aggregates: Iterable[Any], key: str) -> set[str]:
    """Values of *key* over all *aggregates*, each split at commas and stripped.

    Empty when no aggregate has the key; an aggregate that has it empty gives ``{""}``.
    """
    return {part.strip() for value in values(aggregates, key) for part in value.split(",")}


def keys(aggregates: Iterable[Any]) -> list[str]:
    return sorted({key for aggregate in aggregates for key in aggregate.metadata})


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
