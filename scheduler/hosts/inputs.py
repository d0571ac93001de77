"""What results about hosts follow from, for results that are kept between requests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.hosts.table import HostTable

Apart = Callable[["HostTable", Any], set[int]]
"""The few rows of the table that fare otherwise, with this request, than all others may."""


def nothing(request: Any) -> Hashable:
    """What depends on nothing of the request."""
    del request
    return ()


def has_group(request: Any, policy: str) -> bool:
    """Whether the request is for a server of a group with this policy."""
    group = request.instance_group
    return group is not None and group.policy == policy


def unless_in_group(policy: str) -> Callable[[Any], Hashable | None]:
    """Nothing of requests without a group of this policy; more than can be said of the others."""
    return lambda request: None if has_group(request, policy) else ()


def of_group(table: HostTable, request: Any) -> set[int]:
    """The rows that have to do with the request's group: by its servers, by name, by its own."""
    group = request.instance_group
    shown = table.showing_instances((*(group.members or ()), request.instance_uuid))
    return {*shown, *table.row_numbers(group.hosts or ())}


class Inputs:
    """All that the verdicts of a filter follow from, or the raw values of a weigher.

    *columns* names what is read of a host (names of ``columns.BITS``) and *of_request* gives what
    is read of the request as one value; None: more than that, this once.  The result for a host
    must follow from these, from this one host, and from the clock by way of ``service_up`` alone.
    Of a request with the value *idle* a filter passes every host, and reads none of it.

    Of a request of which more is read, *apart* gives the rows that it may make a difference for:
    all others have the same verdict, or the same raw value, as each other.

    *limits* names what is read of a host for the limits that a filter puts on it, besides the
    request: columns and documents that picks of such requests do not change.

    Code that is *plain* only calculates with columns and compares them: it gives one answer where
    a column is a single number in place of an array.
    """

    def __init__(
        self,
        *columns: str,
        of_request: Callable[[Any], Hashable | None] = nothing,
        idle: Hashable = None,
        apart: Apart | None = None,
        limits: Sequence[str] | None = None,
        plain: bool = False,
    ) -> None:
        self.columns = columns
        self.of_request = of_request
        self.idle = idle
        self.apart = apart
        self.limits = limits
        self.plain = plain

    @staticmethod
    def of(part: Any) -> Inputs | None:
        """What the filter or weigher *part* declares, if its own class does."""
        declared: Inputs | None = part.inputs if "inputs" in vars(type(part)) else None
        return declared
