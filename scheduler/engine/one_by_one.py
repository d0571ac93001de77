"""Filters that look at single hosts."""

from typing import Any, Final

from scheduler import errors
from scheduler.filters.base import BaseHostFilter, Refused, filter_properties_of
from scheduler.hosts.candidates import Candidates, request_is_rebuild

#: Reason code of a filter that only says yes or no.
UNSPECIFIED: Final = "unspecified"
#: Sentences that one filter may give in one run; all others count as unspecified.
MOST_SENTENCES: Final = 16

Answers = tuple[list[int], dict[str, list[int]]]
"""The rows that pass, in order, and those that do not, by reason code."""


def ask(each: BaseHostFilter, hosts: Candidates, request: Any) -> Answers:
    """Ask *each* about one host after the other; the code of a ``Refused`` is its sentence."""
    kind, base = type(each), BaseHostFilter
    passing: list[int] = []
    refused: dict[str, list[int]] = {}
    asks_all = (kind.filter_all, kind._filter_one) != (base.filter_all, base._filter_one)
    is_bypassed = not each.RUN_ON_REBUILD and request_is_rebuild(request)
    if is_bypassed and (each.takes_dict or not asks_all):
        return hosts.rows.tolist(), {}
    if each.takes_dict:
        request = filter_properties_of(request)
    if asks_all:
        passed = each.filter_all(hosts.states(), request)
        passing = [] if passed is None else [state.row for state in passed]
        left = set(passing)
        gone = [row for row in hosts.rows.tolist() if row not in left]
        return passing, {UNSPECIFIED: gone} if gone else {}
    with hosts.asked_by(each.name) as states:
        for state in states:
            answer = each.host_passes(state, request)
            if answer:
                passing.append(state.row)
                continue
            code = UNSPECIFIED
            if isinstance(answer, Refused):
                code = errors.quoted(answer.sentence)[: errors.MOST_CHARACTERS]
            if code not in refused and len(refused) >= MOST_SENTENCES:
                code = UNSPECIFIED
            refused.setdefault(code, []).append(state.row)
    return passing, refused
