"""One run: schedulers of the product on the model of a database, a bus, callers and faults."""

import contextlib
import functools
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from scheduler import drivers, errors
from scheduler.claims import loading
from scheduler.drivers.loading import load_host_manager
from scheduler.hosts.refresh import SteadyClock
from tests.builders import a_conf, a_request
from tests.simulation import statements
from tests.simulation.bus import Bus
from tests.simulation.checks import Asked, Checks
from tests.simulation.fleet import GB, TABLES, Fleet, ModelReader
from tests.simulation.kernel import Kernel, Process
from tests.simulation.patches import MACHINE, machine
from tests.simulation.plans import DURATION, Fault, Plan, RequestPlan
from tests.simulation.server import Server
from tests.simulation.statements import ModelDatabase

#: Requests that one scheduler handles at a time.
HANDLERS: Final = 3
#: Seconds until a caller asks again, and how often it does.
TIMEOUT_SECONDS: Final = 15.0
TRIES: Final = 4
#: In so many seconds after the last fault everything is answered.
ANSWERED_IN_SECONDS: Final = 120.0
#: A failure so long before a request may be the one that it is told of.
STALE_SECONDS: Final = 30.0
#: Seconds between two copies of the tables of claims.
COPIES_SECONDS: Final = 0.25
MOST_STEPS: Final = 200_000


@functools.cache
def configuration() -> Any:
    return a_conf(enabled_filters=["RamFilter"], scheduler__claims="database")


@functools.cache
def specification(gb: int) -> Any:
    """A request for *gb* of memory."""
    return a_request(flavor={"memory_mb": gb * GB, "root_gb": 0})


class Scheduler:
    """One life of one worker: the product's driver, host manager and claims."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.process = world, Process(name)
        self.driver: Any = None
        self.manager: Any = None
        world.kernel.spawn(self.process, "start", self._start)

    def _start(self) -> None:
        world, conf = self.world, configuration()
        database = ModelDatabase(world.server, world.plan.dialect)
        clock = SteadyClock(database.server_time, MACHINE.time, MACHINE.monotonic)
        reservations = loading.reservations_from_conf(conf, database, clock)
        manager = load_host_manager(conf, ModelReader(world.server), reservations)
        manager.keep_time_by(clock)
        claims = loading.claims_from_conf(conf, manager, drivers.called_class(conf))
        self.manager, self.driver = manager, drivers.load(conf, manager, claims=claims)
        with contextlib.suppress(errors.StateUnavailable):
            manager.refresh()
            self.driver.claims.prepare()
        for number in range(HANDLERS):
            world.kernel.spawn(self.process, f"handler {number}", self._handle_all)
        periodic = functools.partial(self.driver.run_periodic_tasks, None)
        world.kernel.spawn(self.process, "beside", self._repeat, manager.read_beside, (0.5,))
        world.kernel.spawn(self.process, "periodic", self._repeat, periodic, (0.5, 2.0, 8.0))

    def _repeat(self, work: Callable[[], None], pauses: tuple[float, ...]) -> None:
        kernel = self.world.kernel
        while True:
            kernel.sleep(kernel.random.choice(pauses))
            with contextlib.suppress(errors.StateUnavailable):
                work()

    def _handle_all(self) -> None:
        bus, kernel = self.world.bus, self.world.kernel
        while True:
            message = bus.receive(self.process)
            if self.world.plan.acknowledges_first:
                bus.acknowledge(message)
            answer = self._answer(message.asked, message.is_redelivered)
            kernel.point("reply")
            bus.reply(message.asked, answer, self)
            kernel.point("acknowledge")
            bus.acknowledge(message)

    def _answer(self, asked: Asked, is_redelivered: bool) -> tuple[str, ...] | None:
        """The hosts; none where it is refused; None where the state is not to be had."""
        world = self.world
        context = SimpleNamespace(
            request_id=asked.request_id,
            arrived_at=MACHINE.monotonic(),
            is_redelivered=is_redelivered,
        )
        world.checks.received(asked)
        world.handling.setdefault(self.process, []).append(asked)
        try:
            found = self.driver.select_destinations(
                context, specification(asked.gb), list(asked.names)
            )
            answer = tuple(first.service_host for first, *_rest in found)
        except errors.NoValidHost:
            answer = ()
        except (errors.StateUnavailable, errors.ClaimConflict) as error:
            if world.server.failed_at < asked.begun_at - STALE_SECONDS:
                world.kernel.fail("no answer", str(error))
            world.counts["errors"] += 1
            return None
        finally:
            if not world.kernel.over and not self.process.dead:
                world.handling[self.process].remove(asked)
                world.checks.left(asked)
        world.counts["hosts" if answer else "refusals"] += 1
        world.checks.answered(asked, answer)
        return answer


class World:
    def __init__(self, plan: Plan, tell: Callable[[str, str], None] | None = None) -> None:
        self.plan = plan
        self.kernel = Kernel(plan.schedule, MOST_STEPS, plan.stick, plan.slow, plan.tick)
        self.kernel.tell = tell
        self.server = Server(self.kernel, plan.dialect, TABLES)
        self.fleet = Fleet(self.server, plan.hosts, plan.host_gb)
        self.checks = Checks(self.kernel, self.server, self.fleet)
        self.server.on_commit = self._committed
        self.server.on_deadlock = self.checks.deadlocked
        self.bus = Bus(self.kernel, plan)
        self.outside = Process("outside")
        self.handling: dict[Process, list[Asked]] = {}
        self.schedulers: list[Scheduler] = []
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        self._left = len(plan.requests)
        self._copies: list[tuple[float, Any]] = []
        self._is_restored = any(fault.kind == "restore" for fault in plan.faults)

    def run(self) -> None:
        """Run to the end; raises Violation, or what a task raised."""
        MACHINE.kernel, plan, kernel = self.kernel, self.plan, self.kernel
        random.seed(plan.schedule)
        kernel.current = kernel.spawn(self.outside, "end", self._end)
        self.schedulers = [Scheduler(self, f"s{each}") for each in range(plan.schedulers)]
        for request in plan.requests:
            kernel.spawn(self.outside, f"caller {request.number}", self._call, request)
        if self._is_restored:
            self._keep()
        for fault in plan.faults:
            kernel.at(fault.at, functools.partial(self._break, fault))
        kernel.run()
        if kernel.steps >= MOST_STEPS:
            kernel.fail("endless", f"{kernel.steps} steps, and no end")

    def tell(self, kind: str, text: str) -> None:
        if self.kernel.tell is not None:
            self.kernel.tell(kind, text)

    def _committed(self, changes: list[Any]) -> None:
        if self.kernel.tell is not None:
            for table, number, before, after in changes:
                self.tell("commit", statements.described(table, number, before, after))
        self.checks.committed(changes)

    # --- callers and computes ------------------------------------------------------------

    def _call(self, request: RequestPlan) -> None:
        kernel = self.kernel
        kernel.sleep(request.at)
        names = tuple(f"i{request.number}-{each}" for each in range(request.count))
        for name in names:
            self.fleet.create(name, request.gb)
        asked = Asked(f"r{request.number}", request.gb, names)
        answer = self._ask_twice(asked) if request.fate == "twice" else self._ask(asked)
        if answer and request.fate == "retry":
            # Claims have seconds: of two in one, both lost, nobody can tell which is the later one.
            kernel.sleep(max(request.pause, 1.0) if self._is_restored else request.pause)
            self.checks.give_up(asked)
            asked = Asked(f"r{request.number}-again", request.gb, names)
            answer = self._ask(asked)
        if not answer or request.fate == "fail":
            self._end_of(
                names, lambda name: self.fleet.change(name, vm_state="error", task_state=None)
            )
        elif request.fate == "cancel":
            kernel.sleep(request.pause)
            self._end_of(names, self.fleet.delete)
        else:
            for name, host in zip(names, answer, strict=True):
                self._build(name, host, request.pause)
            kernel.sleep(kernel.random.choice((0.1, 5.0, 12.0)))
            for name, host in zip(names, answer, strict=True):
                kernel.point("delete")
                self.fleet.delete(name)
                kernel.point("report")
                self.fleet.report(host)
        asked.is_over = True
        self._left -= 1

    def _ask_twice(self, asked: Asked) -> tuple[str, ...] | None:
        """The hosts that are claimed in the end where two requests ask for the same servers."""
        kernel, answers = self.kernel, []
        other = Asked(f"{asked.request_id}-too", asked.gb, asked.names)
        self.checks.wanted_twice |= {*asked.names}
        kernel.spawn(self.outside, other.request_id, lambda: answers.append(self._ask(other)))
        self._ask(asked)
        while not answers or self.checks.is_written_again():
            kernel.sleep(0.1)
        other.is_over = True
        several = [self.checks.claimed_hosts(name) for name in asked.names]
        return tuple(hosts[0] for hosts in several) if all(several) else None

    def _ask(self, asked: Asked) -> tuple[str, ...] | None:
        """The answer; None if none came."""
        kernel = self.kernel
        self.asked.append(asked)
        for number in itertools.count():
            if number >= TRIES and not self.bus.is_calm:
                break
            kernel.point("call")
            self.tell("call", f"{asked.request_id}: {asked.gb} GB for {', '.join(asked.names)}")
            self.bus.send(asked)
            ends_at = kernel.now + TIMEOUT_SECONDS
            while not asked.replies and kernel.now < ends_at:
                kernel.sleep(0.1)
            while asked.replies:
                answer, by = asked.replies.pop(0)
                if answer is not None:
                    self.tell("answer", f"{asked.request_id}: {', '.join(answer) or 'refused'}")
                    for name, host in zip(asked.names, answer, strict=bool(answer)):
                        if name not in self.checks.wanted_twice:
                            self.checks.promised[name] = (host, asked.gb, by)
                    self.checks.limits()
                    return answer
                kernel.sleep(0.5)
        return None

    def _end_of(self, names: tuple[str, ...], end: Callable[[str], None]) -> None:
        for name in names:
            self.kernel.point("over")
            self.checks.promised.pop(name, None)
            end(name)

    def _build(self, name: str, host: str, pause: float) -> None:
        """As a compute host does: it says whose it is, reports, goes on, and is done."""
        kernel = self.kernel
        kernel.sleep(pause)
        self.fleet.change(name, host=host, node=host)
        self.checks.promised.pop(name, None)
        kernel.point("report")
        self.fleet.report(host)
        kernel.point("spawn")
        self.fleet.change(name, task_state="spawning")
        kernel.sleep(pause)
        self.fleet.change(name, task_state=None, vm_state="active")

    # --- faults --------------------------------------------------------------------------

    def _break(self, fault: Fault) -> None:
        if self.bus.is_calm:
            return
        if " in a " in fault.kind:
            what, moment = fault.kind.split(" in a ")
            process = self.schedulers[fault.target].process
            later = functools.partial(self._break, replace(fault, kind=what))
            self.server.at_statement[process, moment] = later
            return
        self.tell("fault", f"{fault.kind} s{fault.target} {fault.amount}")
        self.counts[fault.kind] += 1
        if fault.kind in ("breaks", "down", "restart", "restore"):
            self._break_server(fault)
        else:
            self._break_scheduler(fault)

    def _break_scheduler(self, fault: Fault) -> None:
        kernel, target = self.kernel, self.schedulers[fault.target]
        later = functools.partial(kernel.at, kernel.now + fault.amount)
        match fault.kind:
            case "kill":
                self._kill(fault.target)
                later(functools.partial(self._restart, fault.target))
            case "freeze":
                kernel.freeze(target.process)
                later(functools.partial(kernel.thaw, target.process))
            case "jump":
                target.process.clock_off_seconds += fault.amount

    def _break_server(self, fault: Fault) -> None:
        kernel = self.kernel
        match fault.kind:
            case "breaks":
                self.server.break_rate = fault.amount
                kernel.at(kernel.now + 3.0, lambda: setattr(self.server, "break_rate", 0.0))
            case "down":
                self.server.is_down = True
                self.server.break_connections()
                kernel.at(kernel.now + fault.amount, lambda: setattr(self.server, "is_down", False))
            case "restart":
                self.server.break_connections()
            case "restore":
                self.server.restore(self._older(fault.amount))
                self.checks.restored()

    def _keep(self) -> None:
        """Copy the tables of claims now and then."""
        self._copies.append((self.kernel.now, self.server.copy("claims", "claim_hosts")))
        self.kernel.at(self.kernel.now + COPIES_SECONDS, self._keep)

    def _older(self, seconds: float) -> Any:
        """The tables of claims as they were so long ago."""
        at = self.kernel.now - seconds
        return next(
            (copy for when, copy in reversed(self._copies) if when <= at), self._copies[0][1]
        )

    def _kill(self, number: int) -> None:
        process = self.schedulers[number].process
        process.dead = True
        if self.kernel.random.random() < 0.5:  # else the cable is cut: the server waits
            self.server.break_connections(process)
        for asked in self.handling.pop(process, ()):
            self.checks.left(asked)
        self.bus.lost_consumer(process)

    def _restart(self, number: int) -> None:
        if self.schedulers[number].process.dead:
            self.schedulers[number] = Scheduler(self, f"s{number}")

    # --- the end -------------------------------------------------------------------------

    def _end(self) -> None:
        """Faults stop; everything is answered; then nothing is claimed, and all is free."""
        kernel = self.kernel
        kernel.sleep(DURATION)
        self._calm_down()
        ends_at = kernel.now + ANSWERED_IN_SECONDS
        while self._left:
            if kernel.now > ends_at:
                waiting = [each.request_id for each in self.asked if not each.is_over]
                kernel.fail(
                    "unanswered", f"{waiting}, {ANSWERED_IN_SECONDS:.0f} s after all faults"
                )
            kernel.sleep(1.0)
        kernel.sleep(40.0)
        self._account()
        kernel.end()

    def _calm_down(self) -> None:
        self.tell("fault", "no more faults")
        self.bus.is_calm = True
        self.server.break_rate, self.server.is_down = 0.0, False
        for number, each in enumerate(self.schedulers):
            if each.process.frozen:
                self.kernel.thaw(each.process)
            each.process.clock_off_seconds = 0.0
            self._restart(number)

    def _account(self) -> None:
        claims = self.server.tables["claims"].values()
        left = [row for row in claims if row.closed_at is None]
        if left:
            self.kernel.fail("left over", f"open claims: {left}")
        for each in self.schedulers:
            table = each.manager.table
            free = {
                host: int(table.value(row, "free_ram_mb")) // GB
                for (host, _n), row in table.rows.items()
            }
            if free != dict.fromkeys(self.fleet.hosts, self.fleet.host_gb):
                self.kernel.fail("lost", f"{each.process.name} sees {free} free of empty hosts")


@contextlib.contextmanager
def simulating() -> Iterator[None]:
    """The product on the models, until the end of the block."""
    configuration()
    logging.disable(logging.CRITICAL)
    try:
        with machine(), statements.model():
            yield
    finally:
        logging.disable(logging.NOTSET)
