"""Requests for several servers whose hosts can be chosen before any of them is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.hosts.consumption import Consumption
from scheduler.hosts.table import HostTable
from scheduler.standing import Run

if TYPE_CHECKING:
    from scheduler.drivers.pipeline import Policy


def amount_alone(
    later: Run | None, spec: Any, policy: Policy, table: HostTable
) -> Consumption | None:
    """What an instance takes of its host; None if more than that matters of a pick.

    Groups are told of each, cells and devices are documents, bare metal is taken as a whole.
    """
    is_simple = spec.instance_group is None and policy.chain.limits_stand
    if later is None or not later.can_be_alone or not is_simple:
        return None
    amount = Consumption.of(spec, {}, policy.fitting)
    return None if amount.wish is not None or table.column("bare_metal").any() else amount


def names(
    spec: Any, uuids: Sequence[str], count: int, stand_in: Callable[[int], str]
) -> list[tuple[str | None, str | None]]:
    """The uuid of each instance, and what stands in for it where the caller has named none."""
    if uuids:
        return [(uuid, None) for uuid in uuids[:count]]
    return [(spec.instance_uuid, None), *((None, stand_in(n)) for n in range(1, count))]
