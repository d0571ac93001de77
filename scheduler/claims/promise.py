"""What is promised with one pick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.hosts.books import Pick


@dataclass(slots=True, eq=False)
class Promise:
    """One claim as this worker knows it: its pick, and the claim's row once it was read.

    *view* is that of its host when the pick was made; *since* the number of the first look that
    must find the claim, None while it is not booked.
    """

    pick: Pick
    consumer: str
    view: int = 0
    #: Host, node, generation and request id of the claim that was, or is being, written for it.
    written: tuple[str, str, int, str] | None = None
    row: Any = None
    since: int | None = None
