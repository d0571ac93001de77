"""The fleet for the page: all of it once, then what has changed since.

Every row number carries the version in which it last changed.  A reader names the version that it
has and gets the rows that are newer, so that there may be any number of readers.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from scheduler.hosts.table import Key
from scheduler.status_page.snapshot import NUMBERS, RATIOS, STATES, Membership, Snapshot

#: A snapshot this young serves the next reader, too.
FRESH_SECONDS: Final = 0.5
#: Labels are never taken back; there are this many times as many as rows at most.
_LABELS_PER_ROW: Final = 4
_FEWEST_LABELS: Final = 1000
#: JSON has no word for infinity.
_LARGEST_RATIO: Final = 1e6


class _Labels:
    """Numbers for things that many rows share; a thing keeps its number."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.since: list[int] = []

    def number(self, thing: Any, version: int) -> int:
        number = self.known.get(thing)
        if number is None:
            number = self.known[thing] = len(self.known)
            self.since.append(version)
        return number

    def after(self, version: int) -> list[Any]:
        """What was added after *version*, in order."""
        return [
            thing for thing, added in zip(self.known, self.since, strict=True) if added > version
        ]


class Fleet:
    """The changes of the fleet that *take* photographs, counted in versions.

    May be asked by several threads.  *clock* gives seconds that only grow.
    """

    def __init__(
        self, take: Callable[[], Snapshot], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._take = take
        self._clock = clock
        self._lock = threading.Lock()
        self._taken_at = float("-inf")
        self._begin()

    def _begin(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._version = 0
        self._keys: list[Key | None] = []
        self._values = np.zeros((len(NUMBERS) + len(RATIOS) + 3, 0))
        self._versions = np.zeros(0, dtype=np.int64)
        self._memberships = _Labels()
        self._cells = _Labels()

    def changes(self, since: str | None) -> dict[str, Any]:
        """What has changed since the answer whose ``version`` was *since*; else everything.

        ``columns`` has one value per row named in ``columns["row"]``; a node is None where it is
        called like its host.  ``removed`` names rows that are no more, and what ``memberships``
        and ``cells`` number is listed from ``memberships_from`` and ``cells_from`` on.
        """
        with self._lock:
            self._look()
            known = self._known(since)
            rows = np.flatnonzero(self._versions > known)
            removed = [row for row in rows.tolist() if self._keys[row] is None]
            present = [row for row in rows.tolist() if self._keys[row] is not None]
            memberships = self._memberships.after(known)
            cells = self._cells.after(known)
            return {
                "version": f"{self._epoch}.{self._version}",
                "is_full": known == 0,
                "states": STATES,
                "columns": self._columns(present),
                "removed": [] if known == 0 else removed,
                "memberships_from": len(self._memberships.known) - len(memberships),
                "memberships": [
                    {"zones": each.zones, "aggregates": each.aggregates} for each in memberships
                ],
                "cells_from": len(self._cells.known) - len(cells),
                "cells": cells,
            }

    def _known(self, since: str | None) -> int:
        epoch, _dot, version = (since or "").partition(".")
        if epoch != self._epoch or not (version.isascii() and version.isdigit()):
            return 0
        known = int(version)
        return known if known <= self._version else 0

    def _look(self) -> None:
        if self._clock() - self._taken_at < FRESH_SECONDS:
            return
        snapshot = self._take()
        self._taken_at = self._clock()
        labels = max(_FEWEST_LABELS, _LABELS_PER_ROW * len(snapshot.keys))
        if len(self._memberships.known) > labels:
            self._begin()
        version = self._version + 1
        values = self._numbered(snapshot, version)
        before = _widened(self._values, values.shape[1])
        changed = (values != before).any(axis=0)
        for row in _renamed(self._keys, snapshot.keys):
            changed[row] = True
        versions = _widened(self._versions[np.newaxis], len(changed))[0]
        versions[changed] = version
        self._versions, self._values, self._keys = versions, values, snapshot.keys
        if changed.any():
            self._version = version

    def _numbered(self, snapshot: Snapshot, version: int) -> np.ndarray:
        """Everything about each row but its name, as numbers; zeros where no row is."""
        present = np.array([key is not None for key in snapshot.keys], dtype=np.bool_)
        nowhere = Membership((), ())
        numbers = {
            document: self._memberships.number(membership, version)
            for document, membership in {-1: nowhere, **snapshot.membership_of}.items()
        }
        documents, positions = np.unique(snapshot.memberships, return_inverse=True)
        member_numbers = np.array([numbers.get(each, 0) for each in documents.tolist()])
        cells = [self._cells.number(cell, version) for cell in snapshot.cells]
        values = np.vstack(
            [
                snapshot.numbers,
                np.clip(np.nan_to_num(snapshot.ratios), -_LARGEST_RATIO, _LARGEST_RATIO),
                snapshot.states,
                member_numbers[positions],
                np.array(cells),
            ]
        )
        return np.where(present, values, 0.0)

    def _columns(self, rows: list[int]) -> dict[str, list[Any]]:
        keys = [self._keys[row] or ("", None) for row in rows]
        values = self._values[:, rows]
        split = len(NUMBERS)
        ratios = values[split : split + len(RATIOS)].round(3)
        state, membership, cell = values[split + len(RATIOS) :].astype(np.int64)
        return {
            "row": rows,
            "host": [host for host, _node in keys],
            "node": [None if node == host else node for host, node in keys],
            **{
                n: v.tolist() for n, v in zip(NUMBERS, values[:split].astype(np.int64), strict=True)
            },
            **{n: v.tolist() for n, v in zip(RATIOS, ratios, strict=True)},
            "state": state.tolist(),
            "membership": membership.tolist(),
            "cell": cell.tolist(),
        }


def _widened(array: np.ndarray, width: int) -> np.ndarray:
    wide = np.zeros((array.shape[0], width), dtype=array.dtype)
    wide[:, : array.shape[1]] = array
    return wide


def _renamed(before: list[Key | None], after: list[Key | None]) -> list[int]:
    """Rows that now are another host, or one at all, or none."""
    if before == after:
        return []
    longer = before + [None] * (len(after) - len(before))
    return [row for row, (old, new) in enumerate(zip(longer, after, strict=True)) if old != new]
