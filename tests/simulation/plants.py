"""Faults planted in the protocol: each must be found, or the checks are blind to it."""

import contextlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from scheduler.claims import database, reader, recovery, writer
from scheduler.claims.backend import Booked
from scheduler.claims.reader import ClaimReader
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.claims.writer import ClaimWriter
from scheduler.db import sessions
from scheduler.db.claims import Move
from scheduler.drivers.filter_scheduler import FilterScheduler
from scheduler.hosts import instances
from tests.simulation import plans, statements, world
from tests.simulation.patches import MACHINE, attributes
from tests.simulation.server import Server

Plant = Callable[[], AbstractContextManager[None]]
PLANTS: Final[dict[str, Plant]] = {}
#: Where a fault shows in some plans only.
IN_PLANS: Final[dict[str | None, dict[str, Any]]] = {
    "claims after instances": {"kinds": {plans.IN_A_READ: plans.FAULTS[plans.IN_A_READ]}},
    "history is not compared": {"kinds": plans.GOING_BACK},
    "answers are not written again": {"kinds": plans.GOING_BACK},
    "nobody waits for the others": {"kinds": plans.GOING_BACK},
    "generations hold": {"kinds": plans.GOING_BACK},
    "refused in doubt": {"kinds": {}},
}
#: Parts of the protocol as it was at first, each with a seed that finds it, and as what: a peer
#: that stops keeps its locks; generations are counted, and recur when the database goes back,
#: which nobody notices.
LOCKS_HELD: Final = "as it was: locks held over round trips"
RESTORED: Final = "as it was: generations counted, tables restored"
COMMITS_LOST: Final = "as it was: generations counted, commits lost"
AS_IT_WAS: Final = {
    LOCKS_HELD: (94, "unanswered"),
    RESTORED: (4, "over"),
    COMMITS_LOST: (184, "over"),
}
IN_PLANS[LOCKS_HELD] = {"kinds": {"freeze in a statement": (20.0,), "kill in a statement": (5.0,)}}
IN_PLANS[RESTORED] = {"kinds": {"restore": (3.0,)}}
IN_PLANS[COMMITS_LOST] = {"kinds": {"restore": (0.05, 0.5), "restart": (0.0,)}}


def _plant(name: str, owner: Any, **values: Any) -> None:
    PLANTS[name] = lambda: attributes(owner, **values)


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """The fault of that *name* in the product or its SQL, until the end of the block."""
    with contextlib.nullcontext() if name is None else PLANTS[name]():
        yield


# --- statements -----------------------------------------------------------------------------


def _claim_in_two(connection: Any, moves: Any, values: Any, now: Any, *ids: Any) -> Any:
    several = sorted(moves)
    connection.write(lambda one: statements._swap(one, several))
    return _CLAIM(connection, (), values, now, *ids)


def _swap_unsorted(one: Any, moves: Any) -> None:
    several = list(moves)
    MACHINE.kernel.random.shuffle(several)
    _SWAP(one, several)


def _insert_anything(one: Any, table: str, unique: Any, **values: Any) -> Any:
    del unique
    return _INSERT(one, table, (), **values)


def _swap_only_first(one: Any, moves: Any) -> None:
    _SWAP(one, moves[:1])
    for each in moves[1:]:
        if row := one.get(statements.HOSTS, each.id):
            _SWAP(one, [each._replace(expected=row.generation)])


def _open_alone(self: Any, uuids: Any, request_id: str) -> Any:
    found = _WRITTEN_FOR(self, uuids, request_id)
    return {uuid: row for uuid, row in found.items() if row.closed_at is None or not row.host}


_CLAIM, _SWAP, _INSERT = statements.claim, statements._swap, statements.Transaction.insert
_INSERT_ALL, _WRITTEN_FOR = statements._insert, ClaimWriter._written_for
_plant("comparison dropped", statements, _matches=lambda one, n, _e: one.get("claim_hosts", n))
_plant("no unique answers", statements.Transaction, insert=_insert_anything)
_plant("replaced claims stay", statements, _replace=lambda *_what: None)
_plant("claim in two transactions", statements.claim_rows, claim=_claim_in_two)
_plant("locks in any order", statements, _swap=_swap_unsorted)
_plant("only one host is compared", statements, _swap=_swap_only_first)
_plant("half of a request is claimed", statements, _insert=lambda *w: _INSERT_ALL(w[0], w[1][:1]))
_plant("closed claims are no answers", ClaimWriter, _written_for=_open_alone)

# --- reader ---------------------------------------------------------------------------------

_TAKE, _READ_CLAIMS = SharedReservations.take_claims, SharedReservations.read_claims
_RUN = ClaimReader._run


def _read_and_take(self: Any) -> None:
    _READ_CLAIMS(self)
    _TAKE(self)


def _run_then_hosts(self: Any, ask: Any) -> Any:
    read = _RUN(self, ask)
    return replace(read, hosts=statements.begin(self.database, read.hosts)) if read.hosts else read


def _run_same_history(self: Any, ask: Any) -> Any:
    return replace(_RUN(self, ask), is_other=False)


_plant(
    "claims after instances",
    SharedReservations,
    take_claims=_read_and_take,
    read_claims=lambda _self: None,
)
_plant("foreign claims forgotten", SharedReservations, _count=lambda *_what: None)
_plant("hosts are read after claims", ClaimReader, _run=_run_then_hosts)
_plant("never closed", ClaimReader, close=lambda _self, _ids, _now: True)
_plant("purged at once", reader, KEPT=reader.datetime.timedelta(0), PURGE_SECONDS=0.1)
_plant("closed in time of the reader", reader, LATE_SECONDS=-1000.0, ALL_READ_SECONDS=1e9)
_plant("all is read but once", ClaimReader, want_all=lambda _self: None)

# --- reservations ---------------------------------------------------------------------------

_plant("counted before it is reported", instances, _is_counted=lambda *_row: True)
_plant("over before it is built", instances, _end_by_row=lambda *_row: instances.End.DELETED)
_plant("never over", instances, _end_by_row=lambda *_row: None)
_plant("losers keep what they took", SharedReservations, release_all=lambda _self, _several: None)
_plant("any decision is valid", SharedReservations, is_valid=lambda _self, _reservation: True)
_plant("machine's clock", world, SteadyClock=lambda _ask, wall, _elapsed: _Clock(wall))


class _Clock:
    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def __call__(self) -> float:
        return self._wall()

    def check(self) -> None:
        """Never."""


# --- a database that goes back ---------------------------------------------------------------

_plant("history is not compared", ClaimReader, _run=_run_same_history)
_plant("answers are not written again", recovery, write_again=lambda *_what: set())
_plant("nobody waits for the others", SharedReservations, hold_seconds=-1.0)
_plant("generations hold", statements.claim_rows, forget_hosts=lambda _connection: None)
_plant("the same generation again", statements.claim_rows, new_generation=lambda: 7)

# --- writer and driver ----------------------------------------------------------------------


def _write_later(self: Any, request_id: str, decided: Any) -> Any:
    if MACHINE.kernel.random.random() < 0.1:
        return Booked(decided.selections)
    return _WRITE(self, request_id, decided)


def _write_rows(self: Any, moves: Any, values: Any, *ids: Any) -> Any:
    made_up = (statements.Row(id=-n, closed_at=None, **each) for n, each in enumerate(values, 1))
    found = _WRITE_ROWS(self, moves, values, *ids)
    return found or {row.consumer_uuid: row for row in made_up}


_WRITE, _WRITE_ROWS = ClaimWriter.write, ClaimWriter._write_rows
_plant("answered before it is written", ClaimWriter, write=_write_later)
_plant("unknown ends are good", ClaimWriter, _write_rows=_write_rows)
_plant("repeats are decided anew", writer.ClaimWriter, earlier_answer=lambda *_what: None)
_plant("refusals are not written", database.DatabaseClaims, refuse=lambda *_what: True)
_plant("refused in doubt", FilterScheduler, _fits_without_doubt=lambda *_what: False)

# --- the protocol as it was -----------------------------------------------------------------


@contextlib.contextmanager
def _locks_held() -> Iterator[None]:
    """A claim takes several round trips on every server, and no server ends its transaction."""
    stepwise = {"is_atomic": lambda _dialect: False}
    with (
        attributes(sessions, **stepwise),
        attributes(statements, **stepwise),
        attributes(Server, IDLE_SECONDS=math.inf, LOCK_SECONDS=1e9),
    ):
        yield


def _follow_higher(self: Any, row: Any, key: Any, *, is_own: bool) -> None:
    counted = self.counted.get(key)
    if counted is None or counted.generation < row.generation:
        _FOLLOW(self, row, key, is_own=is_own)


def _next_of_row(cls: Any, row: Any) -> Any:
    worker = int(MACHINE.kernel.current.process.name[1:])  # who writes it was known otherwise
    return cls(row.id, row.generation, (row.generation // 8 + 1) * 8 + worker)


@contextlib.contextmanager
def _counted_generations() -> Iterator[None]:
    """A generation is one more than that before, and a lower one is nothing new."""
    counted = classmethod(_next_of_row)
    with (
        attributes(Move, from_row=counted),
        attributes(statements.claim_rows, new_generation=lambda: 0),
        attributes(SharedReservations, _follow=_follow_higher),
        attributes(ClaimReader, _run=_run_same_history),
    ):
        yield


_FOLLOW = SharedReservations._follow
PLANTS |= {LOCKS_HELD: _locks_held, RESTORED: _counted_generations}
PLANTS[COMMITS_LOST] = _counted_generations
