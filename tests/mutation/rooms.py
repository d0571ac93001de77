"""What is mutated, the tests that must notice, and how many mutants of a module are tried."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SEED = 8
"""Draws the mutants of a module that has more than are tried, the same ones every time."""


@dataclass(frozen=True)
class Room:
    """Modules that share tests; at most *each* mutants of every module are tried."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    each: int

    def files(self, root: Path) -> list[str]:
        """The room's modules as paths below *root*."""
        found = {path for pattern in self.modules for path in root.glob(pattern)}
        return sorted(str(path.relative_to(root)) for path in found)


def _of(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names)


# A cell that is silent takes seconds: not a test to be run a thousand times.
READS = ("tests/unit/hosts", "--ignore=tests/unit/hosts/test_cells.py")
ANY_PART = ("tests/unit/test_third_party.py", "tests/unit/standing/test_classes.py")
ROOMS = (
    Room("filters", ("scheduler/filters/*.py",), ("tests/unit/filters", *ANY_PART), 25),
    Room("weights", ("scheduler/weights/*.py",), ("tests/unit/weights", *ANY_PART), 250),
    Room(
        "claims",
        _of("scheduler/claims", "amounts", "answers", "audit", "batches", "seen"),
        _of(
            "tests/unit/claims",
            *("test_amounts", "test_answers", "test_audit", "test_batches", "test_seen"),
        ),
        20,
    ),
    # With a database below them, so that each mutant takes seconds.
    Room(
        "ledger",
        (
            *_of("scheduler/claims", "alternates", "backend", "booking", "books", "ledger"),
            *("scheduler/claims/register.py", "scheduler/db/claims*.py"),
        ),
        ("tests/unit/claims", "--ignore=tests/unit/claims/placement"),
        10,
    ),
    Room("placement", ("scheduler/claims/placement/*.py",), ("tests/unit/claims/placement",), 15),
    Room(
        "refresh",
        _of(
            "scheduler/hosts",
            *("books", "evidence", "journal", "rows", "shared_refresh", "table", "tracking"),
        ),
        _of(
            "tests/unit/hosts",
            *("test_books", "test_books_of_nova", "test_evidence", "test_journal", "test_rows"),
            *("test_shared_refresh", "test_table", "test_tracking"),
        ),
        20,
    ),
    Room(
        "reading",
        _of(
            "scheduler/hosts",
            *("books_of_nova", "costs", "host_manager", "image_properties", "liveness"),
            *("service_record", "updates"),
        ),
        READS,
        10,
    ),
    # The questions that the database is asked for a refresh.
    Room(
        "fleet",
        ("scheduler/db/fleet*.py",),
        (*_of("tests/unit/db", "test_fleet_aggregates", "test_fleet_heartbeats"), *READS),
        10,
    ),
)


def chosen(names: Sequence[str], root: Path) -> list[tuple[Room, list[str]]]:
    """The rooms and modules that *names* (of rooms, or paths of modules) stand for; none: all.

    Raises ValueError for a name that is neither.
    """
    picked = []
    known = {"", *(room.name for room in ROOMS)}
    for room in ROOMS:
        files = room.files(root)
        known.update(files)
        wanted = files if not names or room.name in names else [f for f in files if f in names]
        if wanted:
            picked.append((room, wanted))
    if unknown := sorted(set(names) - known):
        raise ValueError(f"neither a room nor a module of one: {', '.join(unknown)}")
    return picked


def drawn(module: str, mutants: Iterable[str], at_most: int) -> list[str]:
    """The *mutants* of *module* to try: all, or *at_most* that many of them."""
    every = list(mutants)
    if len(every) <= at_most:
        return every
    return sorted(random.Random(f"{SEED} {module}").sample(every, at_most), key=every.index)
