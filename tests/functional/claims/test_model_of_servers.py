"""The same schedules on the simulation's model and on servers: outcomes and rows are equal.

A schedule is statements of two sessions, one after the other.  One that has to wait for a lock is
left alone, until the schedule says that it ends.
"""

import contextlib
import datetime
import itertools
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from scheduler.db import claims as claim_rows
from scheduler.db.database import FAILURES, Database, is_lock_timeout
from scheduler.db.limits import TransactionLimits
from tests.simulation import statements
from tests.simulation.fleet import TABLES
from tests.simulation.kernel import Kernel, Process
from tests.simulation.patches import MACHINE, attributes, machine
from tests.simulation.server import Server
from tests.waiting import wait_until

NOW, LATER = datetime.datetime(2027, 1, 1), datetime.datetime(2027, 1, 2)
HOSTS = [("h1", "h1"), ("h2", "h2")]
WAITING = {
    "mysql": "SELECT variable_value FROM information_schema.global_status "
    "WHERE variable_name = 'Innodb_row_lock_current_waits'",
    "postgresql": "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted",
}
#: Before all of them i0 is claimed on h1, which moves it on from 1 to 10; h2 is at 2.
CASES = {
    "one after the other": "a claim i1 h1 10 11, b claim i2 h1 11 12, a news",
    "it has moved": "a claim i1 h1 10 11, b claim i2 h1 10 12, b news",
    "one of two has moved": "a claim i1 h1 1 11 h2 2 12, b news",
    "two hosts": "a claim i1 h1 10 11 h2 2 12, b news",
    "it has an answer": "a claim i0 h1 10 11, b claim i1 h1 10 12, b news",
    "another request": "a request two, a replace i0 h1 10 11, b close i0, b news",
    "a third one": "a request two, a replace i0 h1 10 11, a request three, "
    "a replace i0 h2 2 12, b news",
    "hosts are gone": "a forget, b claim i1 h1 10 11, b news",
    "makes way": "a aside i0 h2 2 11, b news, b aside i0 h1 10 12, a news",
    "a closed one makes way": "a close i0, b aside i0 h1 10 11, a news",
    "closed twice": "a close i0, b close i0, b insert i0, b news",
    "locked, then gone": "a begin, a forget, b claim i1 h1 10 11, a commit, b end, b news",
    "locked, then as before": "a begin, a forget, b claim i1 h1 10 11, a rollback, b end, b news",
    "locked for too long": "a begin, a forget, b claim i1 h1 10 11, b end, a rollback, b news",
    "not waited for": "a begin, a forget, b claim i1 h1 1 11, b end, a rollback",
    "twice at once": "a begin, a insert i1, b claim i1 h1 10 11, a commit, b end, b insert i2",
    "only once": "a begin, a insert i1, b claim i1 h1 10 11, a rollback, b end, b news",
    "closed as it makes way": "a begin, a close i0, b aside i0 h1 10 11, a commit, b end, b news",
    "replaced as it is closed": "a begin, a close i0, b request two, b replace i0 h1 10 11, "
    "a rollback, b end, b news",
    "late": "a begin, a insert i1, b insert i2, b news, a commit, b news",
    "not in the way": "a begin, a close i0, b claim i1 h1 10 11, b end, a commit, b news",
    "purged meanwhile": "a close i0, a insert i2, a begin, a purge, "
    "b claim i1 h1 10 11, b end, a rollback",
    "deadlock": "a begin, a insert i1, b begin, b insert i2, a insert i2, b insert i1, a end, "
    "b end, a rollback, b rollback",
}


class Session:
    """One connection, and the *steps* on it; *begin* runs one beside those of others."""

    def __init__(self, database, begin):
        self.database, self.begin, self.steps = database, begin, []
        self.request_id = "req"
        self.own = self.connection = database.connect(isolation_level="AUTOCOMMIT")
        self.transaction = contextlib.ExitStack()

    def do(self, ids, verb, *words):
        self.steps.append(Future())
        self.begin(self._run, self.steps[-1], ids, verb, words)

    def _run(self, future, ids, verb, words):
        result = None
        try:
            if verb == "begin":
                self.connection = self.transaction.enter_context(self.database.write())
            elif verb in ("commit", "rollback"):
                self._end(ValueError() if verb == "rollback" else None)
            else:
                result = getattr(self, f"_{verb}")(ids, *words)
        except (claim_rows.Moved, *FAILURES) as error:
            self._end(ValueError())
            result = "locked" if is_lock_timeout(error) else type(error).__name__
        future.set_result(result)

    def _end(self, error):
        self.connection = self.own
        with contextlib.suppress(ValueError):
            self.transaction.__exit__(error and ValueError, error, None)

    def _request(self, _ids, request_id):
        self.request_id = request_id

    def _claim(self, ids, consumer, *words, replaced=(), aside=()):
        moves, values = [], []
        for host, before, after in zip(words[::3], words[1::3], words[2::3], strict=True):
            moves.append(claim_rows.Move(ids[host], int(before), int(after)))
            row = claim_rows.refusal(consumer + host * bool(moves[1:]), self.request_id, "{}", NOW)
            several = {"host": host, "generation": int(after), "previous": int(before)}
            values.append({**row, **several, "closed_at": None})
        found = claim_rows.claim(self.connection, moves, values, LATER, replaced, aside)
        return sorted((row.consumer_uuid, row.generation) for row in found)

    def _aside(self, ids, consumer, *words):
        aside = [row.id for row in claim_rows.of_consumers(self.connection, [consumer])]
        return self._claim(ids, consumer, *words, aside=aside)

    def _replace(self, ids, consumer, *words):
        return self._claim(ids, consumer, *words, replaced=[ids["first"]])

    def _insert(self, _ids, consumer):
        values = claim_rows.refusal(consumer, "req", "{}", NOW)
        claim_rows.insert(self.connection, [{**values, "generation": 7}])

    def _close(self, _ids, consumer):
        found = claim_rows.of_consumers(self.connection, [consumer])
        return claim_rows.close(self.connection, {row.id: row.generation for row in found}, NOW)

    def _purge(self, _ids):
        claim_rows.purge(self.connection, LATER)

    def _forget(self, _ids):
        claim_rows.forget_hosts(self.connection)

    def _news(self, ids):
        first = ids["first"]
        found = []
        for there in [(first, 10)], [(first, 10), (first + 1, 7)], [(first, 7)]:
            is_there, *several = claim_rows.changed_ids(self.connection, there, first, (), NOW)
            is_there_too, is_open = claim_rows.open_ids(self.connection, there)
            several = [sorted(each - first for each in ids) for ids in (*several, is_open)]
            found.append((is_there, is_there_too, several))
        return found


def played(database, sessions, schedule, rest):
    """The outcomes, in any order, as a deadlock has any victim; and the rows at the end."""
    ids = {key[0]: row.id for key, row in claim_rows.begin(database, HOSTS).items()}
    for step in ("a claim i0 h1 1 10", *schedule.split(", ")):
        name, *words = step.split()
        if words != ["end"]:
            sessions[name].do(ids, *words)
        rest(sessions[name].steps[-1:] if words == ["end"] or "first" not in ids else ())
        with database.read() as connection:
            newest = claim_rows.newest(connection)[0]
        first = ids.setdefault("first", newest)
    hosts = claim_rows.known_hosts(database, HOSTS).values()
    with database.read() as connection:
        claims = [
            (row.id - first, row.consumer_uuid.replace(f"aside-{row.id}", "aside"), row.host)
            + (row.generation, row.previous, row.closed_at)
            for row in claim_rows.by_ids(connection, range(first, newest + 1))
        ]
    outcomes = sorted(str(step.result(0)) for each in sessions.values() for step in each.steps)
    return outcomes, sorted((row.host, row.generation) for row in hosts), claims


def on_server(database, schedule):
    used = Database(database.url, settings={}, limits=TransactionLimits(30, 4))
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other, contextlib.closing(used):
        sessions = {"a": Session(used, one.submit), "b": Session(used, other.submit)}

        def is_waiting():
            with database.read() as connection:
                found = connection.exec_driver_sql(WAITING[database.dialect_name]).scalar()
            steps = [step for each in sessions.values() for step in each.steps]
            return sum(not step.done() for step in steps) == int(found)

        def rest(steps):
            wait_until(lambda: all(step.done() for step in steps) and (steps or is_waiting()), 30)

        try:
            return played(used, sessions, schedule, rest)
        finally:
            for each in sessions.values():
                each.own.close()


def on_model(dialect, schedule):
    kernel = MACHINE.kernel = Kernel(1, 100_000, stick=0.5, slow=0.0, tick=0.0001)
    database = statements.ModelDatabase(Server(kernel, dialect, TABLES), dialect)
    found = []

    def session(name):
        process = Process(name)
        return Session(database, lambda work, *args: kernel.spawn(process, "step", work, *args))

    def rest(steps):
        kernel.sleep(0.05)
        while not all(step.done() for step in steps):
            kernel.sleep(0.05)

    def drive():
        sessions = {name: session(name) for name in "ab"}
        found.append(played(database, sessions, schedule, rest))
        kernel.end()

    with machine(), statements.model(), generations():
        kernel.spawn(Process("driver"), "driver", drive)
        kernel.run()
    return found[0]


def generations():
    """New ones are 1, 2, …"""
    numbers = itertools.count(2**63 + 1)
    return attributes(claim_rows, secrets=SimpleNamespace(randbits=lambda _bits: next(numbers)))


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_ends_alike(database, name):
    is_postgresql = database.dialect_name == "postgresql"
    own = f" {name.replace(' ', '-')}"  # entries of deleted rows lock the gaps beside them
    schedule = CASES[name].replace(" i1", f"{own}1").replace(" i2", f"{own}2")
    with generations():
        real = on_server(database, schedule)
    assert on_model("postgresql" if is_postgresql else "mariadb", schedule) == real
