"""A database server: rows, transactions, row locks with waits and deadlocks, ids, lost answers.

Rows are never changed, only replaced.  A statement that reads sees what is committed, and its own
transaction; one that writes runs on the server, whatever becomes of its client.
"""

import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from oslo_db import exception as db_exception

from tests.simulation.kernel import Kernel, Process, Task

Change = tuple[str, int, Any, Any]
"""Table, id, the row before and after: None where there is none."""


class Row(types.SimpleNamespace):
    """One version of one row."""

    #: Number of the commit that wrote it.
    seq: int

    def but(self, **changes: Any) -> "Row":
        return Row(**{**self.__dict__, **changes})

    @property
    def _mapping(self) -> dict[str, Any]:
        return self.__dict__


class Original(Exception):
    """A driver's error, as the product looks at it."""

    def __init__(self, code: int | None, sqlstate: str | None) -> None:
        super().__init__(code, "locked for too long")
        self.sqlstate = sqlstate


class Wrapped(Exception):
    """SQLAlchemy's wrapper of it."""

    def __init__(self, original: Original) -> None:
        super().__init__(str(original))
        self.orig = original


class Transaction:
    """The statements of one client that count together."""

    def __init__(self, server: "Server", owner: Process) -> None:
        self.server, self.owner = server, owner
        self.writes: dict[str, dict[int, Row | None]] = {}
        self.locks: list[Any] = []
        self.waits_for: Transaction | None = None
        self.ended = False
        self.is_doomed = False
        self.uses = 0

    def rows(self, table: str) -> Iterator[Row]:
        own = self.writes.get(table)
        committed = self.server.tables[table]
        if not own:
            yield from committed.values()
            return
        for number, row in committed.items():
            if number not in own:
                yield row
        yield from (row for row in own.values() if row is not None)

    def get(self, table: str, number: int) -> Row | None:
        own = self.writes.get(table)
        if own is not None and number in own:
            return own[number]
        return self.server.tables[table].get(number)

    def put(self, table: str, number: int, row: Row | None) -> None:
        """Write a row that is locked, or delete it."""
        self.writes.setdefault(table, {})[number] = row

    def lock(self, *key: Any) -> None:
        """Wait for the lock on a row or on a key of an index."""
        self.server.lock(self, key)

    def insert(self, table: str, unique: tuple[str, ...], **values: Any) -> Row:
        """Insert a row: its id is drawn now, whether this is committed or not."""
        row, key = Row(id=self.server.next_id(table), **values), tuple(values[n] for n in unique)
        if unique:
            self.lock(table, unique, key)
            for other in self.rows(table):
                if all(getattr(other, name) == values[name] for name in unique):
                    raise db_exception.DBDuplicateEntry(columns=list(unique))
        self.lock(table, row.id)
        self.put(table, row.id, row)
        return row


class Server:
    """All that is committed, and the transactions under way."""

    LOCK_SECONDS: ClassVar[float] = 2.0
    IDLE_SECONDS: ClassVar[float] = 3.0

    def __init__(self, kernel: Kernel, dialect_name: str, tables: Iterable[str]) -> None:
        self.kernel, self.dialect_name = kernel, dialect_name
        self.process = Process("server")
        self.tables: dict[str, dict[int, Row]] = {name: {} for name in tables}
        self.seq = 0
        self.is_down = False
        #: Probability that a connection breaks at a statement, before or after it was done.
        self.break_rate = 0.0
        #: When a client was last told that its connection is broken.
        self.failed_at = float("-inf")
        #: By client and kind what to do when it has sent its next statement of that kind.
        self.at_statement: dict[tuple[Process, str], Callable[[], None]] = {}
        self.on_commit: Callable[[list[Change]], None] = lambda _changes: None
        self.on_deadlock: Callable[[Any], None] = lambda _key: None
        self._ids = dict.fromkeys(self.tables, 0)
        self._held: dict[Any, Transaction] = {}
        self._waiting: dict[Any, list[Callable[[], None]]] = {}
        self._open: list[Transaction] = []

    def next_id(self, table: str) -> int:
        self._ids[table] += 1
        return self._ids[table]

    # --- locks ---------------------------------------------------------------------------

    def lock(self, one: Transaction, key: Any) -> None:
        """Wait until *one* has the lock; raises DBDeadlock, or an error of a wait too long."""
        kernel = self.kernel
        ends_at = kernel.now + self.LOCK_SECONDS
        if one.ended or one.is_doomed:
            raise db_exception.DBConnectionError()
        while (holder := self._held.get(key)) is not None and holder is not one:
            one.waits_for = holder
            if self._is_cycle(one):
                one.waits_for = None
                self.on_deadlock(key)
                raise db_exception.DBDeadlock(Wrapped(Original(1213, "40P01")))
            self._wait(kernel.current, key, ends_at)
            one.waits_for = None
            if one.ended or one.is_doomed:
                raise db_exception.DBConnectionError()
            if kernel.now >= ends_at and self._held.get(key) not in (None, one):
                raise self._timeout()
        if holder is None:
            self._held[key] = one
            one.locks.append(key)

    def is_locked(self, one: Transaction, *key: Any) -> bool:
        """True when another transaction has that lock."""
        return self._held.get(key) not in (None, one)

    def _timeout(self) -> Exception:
        if self.dialect_name == "postgresql":
            return db_exception.DBError(Wrapped(Original(None, "55P03")))
        return db_exception.DBDeadlock(Wrapped(Original(1205, None)))

    @staticmethod
    def _is_cycle(one: Transaction) -> bool:
        holder = one.waits_for
        while holder is not None and holder is not one:
            holder = holder.waits_for
        return holder is one

    def _wait(self, task: Task, key: Any, ends_at: float) -> None:
        is_woken = False

        def wake() -> None:
            nonlocal is_woken
            if not is_woken:
                is_woken = True
                self.kernel.wake(task)

        self._waiting.setdefault(key, []).append(wake)
        self.kernel.at(ends_at, wake)
        self.kernel.park()

    # --- transactions --------------------------------------------------------------------

    def begin(self, owner: Process) -> Transaction:
        one = Transaction(self, owner)
        self._open.append(one)
        return one

    def used(self, one: Transaction) -> None:
        """Begin to count the time in which *one* does nothing."""
        one.uses += 1
        uses = one.uses

        def look() -> None:
            if not one.ended and one.uses == uses:
                self.end(one)

        self.kernel.at(self.kernel.now + self.IDLE_SECONDS, look)

    def end(self, one: Transaction, *, commits: bool = False) -> None:
        """Commit, or roll back; the locks are free then."""
        if one.ended:
            if commits:
                raise db_exception.DBConnectionError()
            return
        one.ended = True
        self._open.remove(one)
        if commits and one.writes:
            self.write(one.writes)
        waiting = self._waiting
        for key in one.locks:
            if self._held.get(key) is one:
                del self._held[key]
            for wake in waiting.pop(key, ()):
                wake()

    def write(self, writes: dict[str, dict[int, Row | None]]) -> None:
        self.seq += 1
        changes: list[Change] = []
        for table, several in writes.items():
            known = self.tables[table]
            for number, row in several.items():
                changes.append((table, number, known.get(number), row))
                if row is None:
                    known.pop(number, None)
                else:
                    row.seq = self.seq
                    known[number] = row
        self.on_commit(changes)

    def break_connections(self, owner: Process | None = None) -> None:
        """Roll back what is open, of one client or of all; statements under way fail."""
        self.failed_at = self.kernel.now
        for one in list(self._open):
            if owner in (None, one.owner):
                one.is_doomed = True
                if one.waits_for is None:
                    self.end(one)

    def copy(self, *names: str) -> dict[str, dict[int, Row]]:
        """The committed rows of some tables as they are now."""
        return {name: dict(self.tables[name]) for name in names}

    def restore(self, copy: dict[str, dict[int, Row]]) -> None:
        """Put tables back to an older *copy*; ids are drawn again from there on."""
        self.break_connections()
        for name, several in copy.items():
            self.tables[name] = dict(several)
            self._ids[name] = max(several, default=0)

    # --- statements ----------------------------------------------------------------------

    def execute(
        self,
        statement: Callable[[Transaction], Any],
        one: Transaction | None = None,
        *,
        writes: bool = False,
        kind: str = "statement",
    ) -> Any:
        """The result of *statement* for the current task's process, in *one* or by itself."""
        kernel, random = self.kernel, self.kernel.random.random
        kernel.point("send")
        owner = kernel.current.process
        breaks = self.break_rate and random() < self.break_rate
        is_broken = self.is_down or (one is not None and one.ended)
        if is_broken or breaks:
            self.failed_at = kernel.now
        if is_broken:
            raise db_exception.DBConnectionError()
        if breaks and random() < 0.5:
            if one is not None:
                self.end(one)
            raise db_exception.DBConnectionError()
        act = self.at_statement.pop((owner, kind), None)
        if act is not None:
            kernel.at(kernel.now, act)
        if writes:
            result = self._run_apart(statement, one, owner, leaves=bool(breaks))
        else:
            result = statement(one or Transaction(self, owner))
        if breaks:
            if one is not None:
                self.end(one)
            raise db_exception.DBConnectionError()
        kernel.sleep(0.0 if act is None else kernel.tick)
        return result

    def _run_apart(
        self,
        statement: Callable[[Transaction], Any],
        one: Transaction | None,
        owner: Process,
        *,
        leaves: bool,
    ) -> Any:
        """Run *statement* on the server; a client that *leaves* does not hear of its end."""
        kernel = self.kernel
        client, outcome = kernel.current, []
        found = one or self.begin(owner)
        found.uses += 1

        def run() -> None:
            try:
                result = statement(found)
                if found.is_doomed:
                    raise db_exception.DBConnectionError()
                if one is None:
                    self.end(found, commits=True)
                outcome.append((result, None))
            except Exception as error:  # noqa: BLE001 - goes to the client
                if one is None or found.is_doomed:
                    self.end(found)
                outcome.append((None, error))
            if not found.ended:
                self.used(found)
            if not leaves:
                kernel.wake(client)

        kernel.spawn(self.process, "statement", run)
        if leaves:
            kernel.point("break")
            raise db_exception.DBConnectionError()
        kernel.park()
        result, error = outcome[0]
        if error is not None:
            raise error
        return result
