"""The protocol as a relation between the tables before and after one commit.

Each commit is one of the actions: claim, refuse, close, purge, begin, mark.  Nothing else may
change the tables of claims.
"""

from collections.abc import Sequence
from typing import Any

from tests.simulation.server import Change

HOSTS, CLAIMS = "claim_hosts", "claims"


def action(changes: Sequence[Change]) -> str | None:
    """The action that *changes* are, empty if they are of other tables; None if they are none."""
    hosts = [(before, after) for table, _id, before, after in changes if table == HOSTS]
    claims = [(before, after) for table, _id, before, after in changes if table == CLAIMS]
    if not hosts and not claims:
        return ""
    if hosts and not claims:
        return "begin" if all(before is None for before, _after in hosts) else None
    if hosts:
        return "claim" if _is_claim(hosts, claims) else None
    if all(before is None and not after.host for before, after in claims):
        return "refuse" if all(after.closed_at for _before, after in claims) else "mark"
    if all(after is None and before.closed_at for before, after in claims):
        return "purge"
    closes = all(
        before and after and not before.closed_at and _same_but(before, after, "closed_at")
        for before, after in claims
    )
    return "close" if closes else None


def _is_claim(hosts: Sequence[Any], claims: Sequence[Any]) -> bool:
    """Each host moves from the generation that its claims follow to the one that they make."""
    made = [after for before, after in claims if before is None]
    moved = {(after.host, before.generation, after.generation) for before, after in hosts if before}
    follows = {(row.host, row.previous, row.generation) for row in made}
    others = [(before, after) for before, after in claims if before is not None]
    return (
        len(moved) == len(hosts)
        and moved == follows
        and all(row.closed_at is None for row in made)
        and all(after and (after.closed_at or not after.host) for _before, after in others)
    )


def _same_but(before: Any, after: Any, *names: str) -> bool:
    left = {**vars(before), **dict.fromkeys((*names, "seq"))}
    return left == {**vars(after), **dict.fromkeys((*names, "seq"))}
