"""Reservations as Nova's releases keep them, for deciding as they did.

The daemon keeps its own (``reservations``); which of these a recorded decision was made with is a
matter of its release (reference page scheduling, sections 2.2, 5.3 and 6.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scheduler.hosts.consumption import Consumption
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import NEVER, Key


class NewtonReservations(Reservations):
    """No Placement: what was reserved stays taken until its host reports, which settles all.

    A row is ignored while it is older than the last reservation on it.  What a request took that
    failed stays taken as well, but the hosts it touched take the next row, however old.
    """

    def accepts(self, key: Key, updated_at: float) -> bool:
        """Not rows older than what is known.

        A row that was never written always counts, and so does every row of bare metal.
        """
        row = self.table.rows.get(key)
        if row is None or key[0] not in self.table.services or updated_at == NEVER:
            return True
        if self.table.column("bare_metal")[row]:
            return True
        return bool(self.table.value(row, "updated_at") <= updated_at)

    def claimable(self, rows: np.ndarray) -> np.ndarray:
        """Every row: there are no claims that could fail."""
        return np.ones(len(rows), dtype=np.bool_)

    def reserve(
        self,
        row: int,
        uuid: str | None,
        amount: Consumption,
        now: float,
        stand_in: str | None = None,
        instance_type_id: int | None = None,
    ) -> Reservation:
        """Consume *amount*; the instance is not seen on its host before the host says so."""
        del uuid, stand_in, instance_type_id
        made = super().reserve(row, None, amount, now)
        if made.booking is None or made.booking.placement.error is None:
            self.table.update(row, {"updated_at": now})
        return made

    def reserve_many(
        self,
        rows: Sequence[int],
        names: Sequence[tuple[str | None, str | None]],
        amount: Consumption,
        now: float,
        instance_type_id: int | None = None,
    ) -> list[Reservation]:
        """See ``reserve``."""
        del names, instance_type_id
        return [self.reserve(row, None, amount, now) for row in rows]

    def release(self, reservation: Reservation) -> None:
        """Give nothing back, and believe whatever row is read next."""
        self._forget(reservation)
        row = self.table.rows.get(reservation.key)
        if row is not None:
            self.table.update(row, {"updated_at": NEVER})

    def confirm(self, reservations: Iterable[Reservation]) -> None:
        """They are part of the rows now, and nothing else remembers them."""
        for each in reservations:
            self._forget(each)


class PlacementReservations(Reservations):
    """Placement keeps claims: every request starts from the rows, and every claim succeeds."""

    def settle(self, now: float, found: Sequence[Any] = ()) -> None:
        """Release those of earlier requests."""
        del now, found
        for each in list(self):
            self.release(each)
