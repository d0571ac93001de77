"""The statements of ``scheduler.db.claims`` on the model of a server, and a database made of it.

Each function has the name, arguments and result of the product's.  The two are compared by
``tests/functional/claims/test_model_of_servers.py``.
"""

import contextlib
import datetime
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from oslo_db import exception as db_exception

from scheduler.claims import loading, recovery
from scheduler.db import claims as claim_rows
from scheduler.db.claims import Pair
from scheduler.db.database import Database, is_atomic
from tests.simulation.patches import EPOCH, MACHINE, attributes
from tests.simulation.server import Row, Server, Transaction

_OPTIONAL = ("closed_at", "numa_topology", "pci_requests", "flavor_id", "source_host", "previous")
HOSTS, CLAIMS = "claim_hosts", "claims"
_ANSWER = ("consumer_uuid", "request_id")
_URLS = {"mariadb": "mysql+pymysql://nobody@model/nova", "mysql": "mysql+pymysql://nobody@model/m"}
_URLS["postgresql"] = "postgresql+psycopg://nobody@model/nova"


class ModelConnection:
    """A connection of one client, each statement a transaction unless it has begun one."""

    def __init__(self, server: Server, dialect: Any) -> None:
        self.server, self.dialect = server, dialect
        self._transaction: Transaction | None = None

    def __enter__(self) -> "ModelConnection":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def begin(self) -> Iterator[None]:
        one = self._transaction = self.server.begin(self.server.kernel.current.process)
        self.server.used(one)
        try:
            yield
            if one.writes or one.locks:
                self.server.execute(lambda each: self.server.end(each, commits=True), one)
        finally:
            self.server.end(one)
            self._transaction = None

    def read(self, statement: Callable[[Transaction], Any]) -> Any:
        return self.server.execute(statement, self._transaction)

    def write(self, statement: Callable[[Transaction], Any]) -> Any:
        return self.server.execute(statement, self._transaction, writes=True)

    def exec_driver_sql(self, text: str) -> None:
        """A ping, or a setting."""
        assert text.startswith(("SELECT 1", "SET SESSION ")), text
        self.read(lambda _one: None)

    def invalidate(self) -> None:
        """Close it on the server, too."""
        self.close()

    def close(self) -> None:
        if self._transaction is not None:
            self.server.end(self._transaction)


class ModelDatabase(Database):
    """A database of the product whose server is the model."""

    def __init__(self, server: Server, dialect_name: str) -> None:
        settings = {"db_retry_interval": 0, "db_max_retry_interval": 0.01}
        super().__init__(_URLS[dialect_name], settings=settings)
        self.server = server
        name = "postgresql" if dialect_name == "postgresql" else "mysql"
        self._dialect = SimpleNamespace(name=name, is_mariadb=dialect_name == "mariadb")

    @property
    def engine(self) -> Any:
        """As much of an engine as the product asks for."""
        return SimpleNamespace(dialect=self._dialect)

    def connect(self, **options: Any) -> Any:
        """A connection; *options* make no difference."""
        del options
        return ModelConnection(self.server, self._dialect)

    def server_time(self) -> float | None:
        """The right time, unless the server is away."""
        with contextlib.suppress(*loading.FAILURES):
            return float(self.server.execute(lambda _one: EPOCH + self.server.kernel.now))
        return None


@contextlib.contextmanager
def model() -> Iterator[None]:
    """The functions of this module in place of the product's, until the end of the block."""
    here = {name: globals()[name] for name in _NAMES}
    drawn = SimpleNamespace(randbits=lambda bits: MACHINE.kernel.random.getrandbits(bits))
    named = SimpleNamespace(uuid4=lambda: f"mark-{drawn.randbits(64)}")
    with (
        attributes(claim_rows, **here, secrets=drawn),
        attributes(recovery, uuid=named),
        attributes(loading, claims_database=lambda _conf, database: database),
    ):
        yield


# --- hosts ----------------------------------------------------------------------------------


def known_hosts(database: Any, keys: Iterable[tuple[str, str]]) -> dict[Any, Any]:
    names = {host for host, _node in keys}
    with database.read() as connection:
        return connection.read(
            lambda one: {(r.host, r.node): r for r in one.rows(HOSTS) if r.host in names}
        )


def begin(database: Any, keys: Collection[tuple[str, str]]) -> dict[Any, Any]:
    while missing := sorted({*keys} - (found := known_hosts(database, keys)).keys()):
        values = [
            {"host": h, "node": n, "generation": claim_rows.new_generation()} for h, n in missing
        ]

        def run(one: Transaction, values: Any = values) -> None:
            for each in values:
                one.insert(HOSTS, ("host", "node"), **each)

        with contextlib.suppress(db_exception.DBDuplicateEntry):
            database.write_retrying(lambda connection, run=run: connection.write(run))
    return found


def forget_hosts(connection: Any) -> None:
    def run(one: Transaction) -> None:
        for number in sorted(row.id for row in one.rows(HOSTS)):
            one.server.kernel.point("delete")
            one.lock(HOSTS, number)
            one.put(HOSTS, number, None)

    connection.write(run)


def unlocked(connection: Any, numbers: Collection[int]) -> set[int]:
    server = connection.server
    there = server.tables[HOSTS]
    return connection.read(
        lambda one: {n for n in numbers if n in there and not server.is_locked(one, HOSTS, n)}
    )


# --- claims ---------------------------------------------------------------------------------


def newest(connection: Any) -> tuple[int, int]:
    return connection.read(
        lambda one: max(((r.id, r.generation) for r in one.rows(CLAIMS)), default=(0, 0))
    )


def open_ids(connection: Any, there: Collection[Pair]) -> tuple[bool, set[int]]:
    return connection.read(
        lambda one: (
            _are_there(one, there),
            {r.id for r in one.rows(CLAIMS) if r.closed_at is None},
        )
    )


def _are_there(one: Transaction, several: Collection[Pair]) -> bool:
    return all((r := one.get(CLAIMS, n)) and r.generation == g for n, g in several)


def changed_ids(
    connection: Any,
    there: Collection[Pair],
    number: int,
    missed: Collection[int],
    since: datetime.datetime | None,
) -> tuple[bool, set[int], set[int]]:
    since = None if since is None else since.replace(microsecond=0)

    def run(one: Transaction) -> tuple[bool, set[int], set[int]]:
        several = list(one.rows(CLAIMS))
        new = {row.id for row in several if row.id > number or row.id in missed}
        closed = {
            r.id
            for r in several
            if since is not None
            and r.closed_at is not None
            and (r.closed_at >= since or (r.id, r.generation) in there)
        }
        return _are_there(one, there), new, closed

    return connection.read(run)


def by_ids(connection: Any, ids: Collection[int]) -> list[Any]:
    if not ids:
        return []
    return connection.read(
        lambda one: [row for number in sorted(ids) if (row := one.get(CLAIMS, number))]
    )


def of_consumers(connection: Any, uuids: Collection[str]) -> list[Any]:
    return connection.read(
        lambda one: sorted(
            (row for row in one.rows(CLAIMS) if row.consumer_uuid in uuids), key=lambda row: row.id
        )
    )


def insert(connection: Any, values: Sequence[Mapping[str, Any]]) -> None:
    connection.write(lambda one: _insert(one, values))


def _insert(one: Transaction, values: Sequence[Mapping[str, Any]]) -> list[Row]:
    found = []
    for each in values:
        one.server.kernel.point("insert")
        row = {**dict.fromkeys(_OPTIONAL), **each}
        found.append(one.insert(CLAIMS, _ANSWER, **row))
    return found


def close(connection: Any, generations: Mapping[int, int], now: datetime.datetime) -> int:
    def run(one: Transaction) -> int:
        closed = 0
        for number, generation in sorted(generations.items()):
            one.lock(CLAIMS, number)
            row = one.get(CLAIMS, number)
            if row and row.closed_at is None and row.generation == generation:
                one.put(CLAIMS, number, row.but(closed_at=now))
                closed += 1
        return closed

    return connection.write(run)


def purge(connection: Any, before: datetime.datetime) -> None:
    newest_then = connection.read(
        lambda one: max((r.id for r in one.rows(CLAIMS) if r.created_at < before), default=0)
    )

    def run(one: Transaction) -> None:
        for row in list(one.rows(CLAIMS)):
            if row.closed_at is not None and row.closed_at < before and row.id < newest_then:
                one.lock(CLAIMS, row.id)
                one.put(CLAIMS, row.id, None)

    connection.write(run)


# --- claiming -------------------------------------------------------------------------------

Moves = Sequence[Any]


def claim(
    connection: Any,
    moves: Iterable[Any],
    values: Sequence[Mapping[str, Any]],
    now: datetime.datetime,
    replaced: Collection[int] = (),
    aside: Collection[int] = (),
) -> Sequence[Any]:
    moves, several = sorted(moves), list(values)
    consumers = {each["consumer_uuid"] for each in several}

    def replace(one: Transaction) -> None:
        _replace(one, {*replaced, *aside}, consumers, now, aside)

    if not is_atomic(connection.dialect):
        connection.write(lambda one: _swap(one, moves))
        connection.write(replace)
        return connection.write(lambda one: _insert(one, several))

    def run(one: Transaction) -> Sequence[Any]:
        _swap(one, moves)
        replace(one)
        found = _insert(one, several)
        one.server.kernel.point("commit")
        return found

    return connection.write(run)


def _swap(one: Transaction, moves: Moves) -> None:
    """Move hosts on, or raise Moved.

    PostgreSQL locks what its statement saw when it began, and looks at the rows again then.
    MariaDB locks every row, and looks at it then.
    """
    server = one.server
    is_seen = server.dialect_name == "postgresql"
    seen = {number for number, expected, _next in moves if _matches(one, number, expected)}
    locked = []
    for number, expected, following in moves:
        server.kernel.point("swap")
        if number in seen if is_seen else one.get(HOSTS, number):
            one.lock(HOSTS, number)
            if _matches(one, number, expected):
                locked.append((number, following))
    if len(locked) != len(moves):
        raise claim_rows.Moved
    for number, following in locked:
        row = one.get(HOSTS, number)
        assert row is not None
        one.put(HOSTS, number, row.but(generation=following))


def _matches(one: Transaction, number: int, expected: int) -> bool:
    row = one.get(HOSTS, number)
    return row is not None and row.generation == expected


def _replace(
    one: Transaction,
    numbers: Collection[int],
    consumers: Collection[str],
    now: datetime.datetime,
    aside: Collection[int],
) -> None:
    """Close what is open of these claims, and rename what is to be set aside."""

    def found(number: int) -> Row | None:
        row = one.get(CLAIMS, number)
        return row if row and row.consumer_uuid in consumers else None

    for number in sorted(numbers):
        if found(number) is not None:
            one.lock(CLAIMS, number)
        if (row := found(number)) is None:
            continue
        if number in aside:
            one.lock(CLAIMS, _ANSWER, (row.consumer_uuid, row.request_id))
            row = row.but(consumer_uuid=f"aside-{number}")
        one.put(CLAIMS, number, row.but(closed_at=row.closed_at or now))


_NAMES = (
    *("known_hosts", "begin", "forget_hosts", "unlocked", "newest", "open_ids", "changed_ids"),
    *("by_ids", "of_consumers", "insert", "close", "purge", "claim"),
)


def described(table: str, number: int, before: Any, after: Any) -> str:
    """One change of a row, for a person."""
    old = {} if before is None else vars(before)
    new = {} if after is None else vars(after)
    names = [name for name in (new or old) if name not in ("seq", "answer", "id")]
    parts = [f"{name}={new.get(name)}" for name in names if old.get(name) != new.get(name)]
    verb = "deletes" if after is None else "inserts" if before is None else "updates"
    return f"{verb} {table} {number}: {', '.join(parts)}"
