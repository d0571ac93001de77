"""The picks that follow each other while nothing moves but the hosts that are picked.

As long as the bounds of weights stay, and each host has less weight once it is picked than any that
comes after it, hosts are picked in the order of their totals: that is found out for many at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.standing.front import Front, num_before

TieOrder = Callable[[np.ndarray], np.ndarray | None]
"""Rows that are equal, in the order in which they are picked; None if that is not looked for."""


def next_picks(
    front: Front, passes: np.ndarray, raws: np.ndarray, tie_order: TieOrder, most: int
) -> list[int]:
    """At most that many of the next rows that are picked one after the other; all are taken.

    *passes* and *raws* say of every row of *front* whether it passes with one instance more, and
    what the weighers make of it then.
    """
    after = front.totals_with(raws)
    order = np.argsort(-front.totals, kind="stable")
    best = front.totals[order]
    end = min(
        front.num_sure(best),
        num_before(~passes[order]),
        # The first of all is the best; later ones are if those before have become less.
        1 + num_before(best[1:] <= np.maximum.accumulate(after[order])[:-1]),
        *(column.num_staying(order, raws[:, number]) for number, column in front.picked),
    )
    end = min(_settle_ties(front, order, best, after, end, tie_order), most)
    picked = order[:end]
    if end:
        front.take_many(picked, raws, after)
    found: list[int] = front.rows[picked].tolist()
    return found


def _settle_ties(
    front: Front,
    order: np.ndarray,
    best: np.ndarray,
    after: np.ndarray,
    end: int,
    tie_order: TieOrder,
) -> int:
    """Put those of the first *end* that are equal in order; how many of them are sure."""
    is_equal = best[1:] == best[:-1]
    begins = np.flatnonzero(is_equal[:end] & ~np.concatenate([[False], is_equal])[:-1][:end])
    for begin in begins.tolist():
        last = begin + 1 + num_before(~is_equal[begin:])
        equals = order[begin:last]
        rows = front.rows[equals]
        settled = tie_order(rows)
        if settled is None:
            return int(begin)
        if (settled != rows).any():
            if last > end or after[equals].max() >= best[begin]:
                return int(begin)
            order[begin:last] = front.rows.searchsorted(settled)
    return end
