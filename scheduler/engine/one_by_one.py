"""Filters that look at single hosts, and the host on which a filter or weigher failed."""

from collections.abc import Callable
from typing import Any, Final

from scheduler import errors
from scheduler.filters.base import BaseHostFilter, Refused
from scheduler.hosts.candidates import Candidates, request_is_rebuild
from scheduler.weights.base import BaseHostWeigher

#: Reason code of a filter that only says yes or no.
UNSPECIFIED: Final = "unspecified"
#: Sentences that one filter may give in one run; all others count as unspecified.
MOST_SENTENCES: Final = 16

Answers = tuple[list[int], dict[str, list[int]]]
"""The rows that pass, in order, and those that do not, by reason code."""


def ask(each: BaseHostFilter, hosts: Candidates, request: Any) -> Answers:
    """Ask *each* about one host after the other; the code of a ``Refused`` is its sentence."""
    states, kind = hosts.states(), type(each)
    passing: list[int] = []
    refused: dict[str, list[int]] = {}
    if (kind.filter_all, kind._filter_one) != (
        BaseHostFilter.filter_all,
        BaseHostFilter._filter_one,
    ):
        passed = each.filter_all(states, request)
        passing = [] if passed is None else [state.row for state in passed]
        left = set(passing)
        gone = [state.row for state in states if state.row not in left]
        return passing, {UNSPECIFIED: gone} if gone else {}
    if not each.RUN_ON_REBUILD and request_is_rebuild(request):
        return [state.row for state in states], {}
    for state in states:
        answer = each.host_passes(state, request)
        if answer:
            passing.append(state.row)
            continue
        code = (
            errors.quoted(answer.sentence)[: errors.MOST_CHARACTERS]
            if isinstance(answer, Refused)
            else UNSPECIFIED
        )
        if code not in refused and len(refused) >= MOST_SENTENCES:
            code = UNSPECIFIED
        refused.setdefault(code, []).append(state.row)
    return passing, refused


def failure_of(
    name: str, error: Exception, hosts: Candidates, again: Callable[[Candidates], Any]
) -> errors.ExtensionFailed:
    """The fault for *error* of the class *name*, with the first of *hosts* that brings it about.

    *again* asks it about some of them; a host is found by halves.
    """
    rows = hosts.rows
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        rows = half if _fails(again, Candidates(hosts.scope, half)) else rows[len(half) :]
    last = Candidates(hosts.scope, rows)
    host = "".join(state.host for state in last.states() if _fails(again, last))
    return errors.ExtensionFailed.from_error(error, name, host)


def failure_of_weigher(
    each: BaseHostWeigher, error: Exception, hosts: Candidates, request: Any
) -> errors.ExtensionFailed:
    """The fault for *error* of the weigher *each*, with its host."""

    def again(some: Candidates) -> Any:
        return each.raw(some, request), each.multipliers(some)

    return failure_of(each.name, error, hosts, again)


def _fails(again: Callable[[Candidates], Any], hosts: Candidates) -> bool:
    try:
        again(hosts)
    except Exception:  # noqa: BLE001 - whatever the filter of an operator raises
        return True
    return False
