"""Reading the metadata that operators put on host aggregates.

Reference page filters, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def split_values(aggregates: Iterable[Any], key: str) -> set[str]:
    """Values of *key* over all *aggregates*, each split at commas and stripped.

    Empty when no aggregate has the key; an aggregate that has it empty gives ``{""}``.
    """
    return {
        part.strip()
        for aggregate in aggregates
        if key in aggregate.metadata
        for part in aggregate.metadata[key].split(",")
    }
