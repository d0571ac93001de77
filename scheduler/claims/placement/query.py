"""The query string of ``GET /allocation_candidates``, keys in order."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scheduler import objects

#: What Placement must be told when several groups have a suffix and the flavor says nothing.
POLICY_IF_NONE = "none"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: the groups, and what concerns them all.  *limit* None: no limit."""

    groups: Sequence[objects.RequestGroup]
    limit: int | None = None
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: Sequence[Sequence[str]] = field(default=())
    group_policy: str | None = None

    def to_text(self) -> str:
        """As Placement reads it."""
        pairs: list[tuple[str, str]] = []
        for group in self.groups:
            pairs += _of_group(group)
        if self.limit is not None:
            pairs.append(("limit", str(self.limit)))
        if traits := _traits(self.root_required, self.root_forbidden):
            pairs.append(("root_required", traits))
        pairs += [("same_subtree", ",".join(each)) for each in self.same_subtree if each]
        suffixed = [each for each in self.groups if each.requester_id is not None]
        policy = self.group_policy or (POLICY_IF_NONE if len(suffixed) > 1 else None)
        if policy is not None and suffixed:
            pairs.append(("group_policy", policy))
        return urllib.parse.urlencode(sorted(pairs))


def _of_group(group: objects.RequestGroup) -> list[tuple[str, str]]:
    suffix = group.requester_id or ""
    pairs = []
    resources = ",".join(f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
    if resources:
        pairs.append((f"resources{suffix}", resources))
    if traits := _traits(group.required_traits, group.forbidden_traits):
        pairs.append((f"required{suffix}", traits))
    pairs += [
        (f"member_of{suffix}", "in:" + ",".join(sorted(each))) for each in group.aggregates if each
    ]
    if group.forbidden_aggregates:
        names = ",".join(sorted(group.forbidden_aggregates))
        pairs.append((f"member_of{suffix}", f"!in:{names}"))
    if group.in_tree:
        pairs.append((f"in_tree{suffix}", group.in_tree))
    return pairs


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *(f"!{name}" for name in sorted(forbidden))])
