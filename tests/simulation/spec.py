"""The protocol as a relation between the tables before and after one commit.

Each commit is one of the actions: claim, refuse, close, purge, begin, mark, forget.  Nothing else
may change the tables of claims.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.server import Change

HOSTS, CLAIMS = "claim_hosts", "claims"
Pairs = Sequence[tuple[Any, Any]]
"""Rows before and after: None where there is none."""


def action(changes: Sequence[Change]) -> str | None:
    """The action that *changes* are, empty if they are of other tables; None if they are none."""
    hosts = [(before, after) for table, _id, before, after in changes if table == HOSTS]
    claims = [(before, after) for table, _id, before, after in changes if table == CLAIMS]
    if not hosts and not claims:
        return ""
    return next((name for name, is_it in _ACTIONS.items() if is_it(hosts, claims)), None)


def _is_claim(hosts: Pairs, claims: Pairs) -> bool:
    """Each host moves from the generation that its claims follow to the one that they make."""
    made = [after for before, after in claims if before is None]
    moved = {(a.host, b.generation, a.generation) for b, a in hosts if b and a}
    follows = {(row.host, row.previous, row.generation) for row in made}
    others = [(before, after) for before, after in claims if before is not None]
    return (
        bool(hosts)
        and len(moved) == len(hosts)
        and moved == follows
        and all(row.closed_at is None for row in made)
        and all(after and (after.closed_at or not after.host) for _before, after in others)
    )


_ACTIONS: dict[str, Callable[[Pairs, Pairs], bool]] = {
    "begin": lambda hosts, claims: not claims and all(b is None for b, _a in hosts),
    "refuse": lambda hosts, claims: (
        not hosts and all(not b and a and not a.host and a.closed_at for b, a in claims)
    ),
    "mark": lambda hosts, claims: (
        not hosts and all(not b and a and not a.host and not a.closed_at for b, a in claims)
    ),
    # No generation that anybody knew is left.
    "forget": lambda hosts, claims: not claims and all(a is None for _b, a in hosts),
    "claim": _is_claim,
    "purge": lambda hosts, claims: not hosts and all(a is None and b.closed_at for b, a in claims),
    "close": lambda hosts, claims: (
        not hosts
        and all(
            b and a and not b.closed_at and a == b.but(closed_at=a.closed_at, seq=a.seq)
            for b, a in claims
        )
    ),
}
