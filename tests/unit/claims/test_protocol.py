"""The protocol under every order of events: schedulers with old views, arrivals, failures, crashes.

At every moment a host's instances and open claims together fit on it; a request that comes again
has its answer; and when all is over, nothing of it is lost.
"""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scheduler import errors
from scheduler.claims.backend import Lost, Repeated
from scheduler.db.database import Database
from tests.unit.claims.fleets import GB, Fleet, Worker, a_name
from tests.unit.hosts.reading import Clock

pytestmark = pytest.mark.slow

WORKERS = 3
REMEMBERED_SECONDS = 250
workers = st.integers(0, WORKERS - 1)
sizes = st.sampled_from([1, 2, 3])


class Schedulers(RuleBasedStateMachine):
    """Three workers, two hosts of 4 GB."""

    #: Gives a database with all tables and no rows in them.
    empty: Callable[[], contextlib.AbstractContextManager[Database]]
    decided = Bundle("decided")
    placed = Bundle("placed")
    running = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.ending = contextlib.ExitStack()
        self.database = self.ending.enter_context(self.empty())
        self.clock = Clock()
        self.fleet = Fleet(self.database, self.clock, hosts=2)
        drivers = ["filter_scheduler", "filter_scheduler", "caching_scheduler"]
        self.workers = [Worker(self.database, self.clock, driver=each) for each in drivers]
        self.requests = 0
        #: By request id: size, names, hosts (None: refused) and when.
        self.answers = {}
        self.lives = [0] * WORKERS

    def teardown(self) -> None:
        try:
            self.nothing_is_lost()
        finally:
            for each in self.workers:
                each.close()
            self.ending.close()

    # --- requests ------------------------------------------------------------------------

    def new_request(self, gb: int, count: int):
        self.requests += 1
        names = [a_name() for _ in range(count)]
        for name in names:
            self.fleet.wait_for_host(name, gb * GB)
        return f"req-{self.requests}", names

    @rule(target=placed, number=workers, gb=sizes, count=st.integers(1, 2))
    def request(self, number, gb, count):
        """A request from its arrival to its answer."""
        request_id, names = self.new_request(gb, count)
        hosts = self.ask(number, request_id, gb, names)
        self.answers[request_id] = gb, names, hosts, self.clock.ahead_seconds
        return multiple(*zip(names, hosts or (), strict=bool(hosts)))

    def ask(self, number, request_id, gb, names):
        """The hosts chosen, None for no valid host."""
        try:
            return self.workers[number].hosts(request_id, gb * GB, *names)
        except errors.NoValidHost:
            return None

    @precondition(lambda self: self.answers)
    @rule(number=workers, data=st.data())
    def repeat(self, number, data):
        """A request that comes again, whatever has become of its instances."""
        request_id = data.draw(st.sampled_from(sorted(self.answers)))
        gb, names, hosts, at = self.answers[request_id]
        if self.clock.ahead_seconds < at + REMEMBERED_SECONDS:
            assert self.ask(number, request_id, gb, names) == hosts

    @rule(target=decided, number=workers, gb=sizes, count=st.integers(1, 2))
    def decide(self, number, gb, count):
        """A decision on whatever this worker knows; it is booked later."""
        request_id, names = self.new_request(gb, count)
        worker = self.workers[number]
        try:
            pending = worker.decide(request_id, gb * GB, *names)
        except errors.NoValidHost:
            return multiple()
        return number, self.lives[number], pending, names

    @rule(target=placed, decided=consumes(decided))
    def book(self, decided):
        """The claim of an earlier decision, unless its worker died since."""
        number, life, pending, names = decided
        if life != self.lives[number]:
            return multiple()
        result = pending.book()
        assert not isinstance(result, Repeated)
        if isinstance(result, Lost):
            return multiple()
        return multiple(*zip(names, pending.hosts, strict=True))

    @rule(target=placed, number=workers, where=consumes(placed), gb=sizes)
    def retry(self, number, where, gb):
        """The build failed before it began; the scheduler is asked again."""
        name, _host = where
        self.requests += 1
        request_id = f"req-{self.requests}"
        hosts = self.ask(number, request_id, gb, [name])
        if hosts is None:
            self.fleet.fail(name)
            return multiple()
        self.answers[request_id] = gb, [name], hosts, self.clock.ahead_seconds
        self.fleet.change(name, None, memory_mb=gb * GB)
        return name, hosts[0]

    # --- workers -------------------------------------------------------------------------

    @rule(number=workers)
    def refresh(self, number):
        self.workers[number].manager.refresh()

    @rule(number=workers)
    def read_new(self, number):
        self.workers[number].driver.claims.read_new()

    @rule(number=workers)
    def die(self, number):
        self.workers[number].close()
        driver = self.workers[number].driver_name
        self.workers[number] = Worker(self.database, self.clock, driver=driver)
        self.lives[number] += 1

    @rule(seconds=st.sampled_from([1, 3, 14]))
    def pass_time(self, seconds):
        self.clock.ahead_seconds += seconds

    # --- compute hosts -------------------------------------------------------------------

    @rule(target=running, where=consumes(placed))
    def arrive(self, where):
        self.fleet.arrive(*where)
        return where

    @rule(where=consumes(placed))
    def fail(self, where):
        self.fleet.fail(where[0])

    @rule(where=consumes(placed))
    def cancel(self, where):
        self.fleet.delete(where[0])

    @rule(where=consumes(running))
    def delete(self, where):
        self.fleet.delete(*where)

    # --- what must hold ------------------------------------------------------------------

    @invariant()
    def no_host_is_promised_twice(self):
        self.fleet.check()

    def nothing_is_lost(self):
        """Once every instance is gone, everything is free again, and nothing is claimed."""
        for host, instances in self.fleet.promised_and_present().items():
            for name in instances:
                self.fleet.delete(name, host)
        self.clock.ahead_seconds += 30
        for _time in range(2):
            for worker in self.workers:
                worker.manager.refresh()
            self.clock.ahead_seconds += 30
        assert self.fleet.claims() == {}
        for number, worker in enumerate(self.workers):
            pending = [each for each in worker.manager.reservations if not worker.is_written(each)]
            taken = sum(each.amount.ram_mb for each in pending)
            free = sum(worker.free_mb().values())
            assert free + taken == sum(self.fleet.ram_mb for _host in self.fleet.hosts), (
                number,
                worker.free_mb(),
                [worker.manager.reservations.claim(each) for each in worker.manager.reservations],
            )


@pytest.mark.timeout(600)
def test_no_host_is_ever_promised_twice(empty_database, steps):
    machine = type("Here", (Schedulers,), {"empty": staticmethod(empty_database)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=steps,
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
