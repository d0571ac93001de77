"""Tasks of one thread, a seeded choice of who goes on, time that only this choice moves."""

import heapq
import random
from collections.abc import Callable
from typing import Any

import greenlet


class Violation(Exception):
    """Something that must hold does not; *what* names it in a word."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(f"{what}: {text}")
        self.what = what


class Process:
    """Tasks that live, stop and die together, with a clock that may be set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = self.frozen = False
        self.clock_off_seconds = 0.0
        self.held: list[Task] = []


class Task:
    """One line of work of a process."""

    __slots__ = ("greenlet", "name", "number", "process", "slow")

    def __init__(self, number: int, name: str, process: Process, slow: float) -> None:
        self.number, self.name, self.process, self.slow = number, name, process, slow
        self.greenlet: Any = None


class Kernel:
    """Runs tasks until :meth:`end`; every choice comes from *seed*.

    *stick* is the probability that a task goes on at a switch point, *slow* that a task is slow.
    """

    def __init__(self, seed: int, most_steps: int, stick: float, slow: float, tick: float) -> None:
        self.random = random.Random(seed)
        self.now, self.steps, self.digest = 0.0, 0, 0
        self.tick, self.most_steps = tick, most_steps
        self.current: Task
        self.failure: BaseException | None = None
        self.over = False
        #: Called with kind and detail at every event worth a line.
        self.tell: Callable[[str, str], None] | None = None
        self._stick, self._slow = stick, slow
        self._draw = self.random.random
        self._ready: list[Task] = []
        self._tasks: list[Task] = []
        self._timers: list[tuple[float, int, Any]] = []
        self._count = 0
        self._hub = greenlet.getcurrent()

    # --- tasks ---------------------------------------------------------------------------

    def spawn(self, process: Process, name: str, work: Callable[..., None], *args: Any) -> Task:
        slow = self._slow if self._draw() < self._slow else 0.0
        self._count += 1
        task = Task(self._count, name, process, slow)

        def run() -> None:
            try:
                work(*args)
            except greenlet.GreenletExit:
                pass
            except BaseException as error:  # noqa: BLE001 - what a task raises ends the run
                self.failure = self.failure or error

        task.greenlet = greenlet.greenlet(run, self._hub)
        self._tasks.append(task)
        self._ready.append(task)
        return task

    def point(self, kind: str) -> None:
        """A switch point: perhaps others come first."""
        task = self.current
        self._pass(task, kind)
        if self._draw() < self._stick and not task.process.frozen:
            return
        self._ready.append(task)
        self._switch(task)

    def _pass(self, task: Task, kind: str) -> None:
        if self.over:
            raise greenlet.GreenletExit
        self.steps += 1
        self.now += self.tick
        self.digest = (self.digest * 1000003 ^ task.number * 31 + len(kind)) & 0xFFFFFFFFFFFF

    def _switch(self, task: Task) -> None:
        """Let the next one go on, until it is this task's turn."""
        following = self._next() if self.steps < self.most_steps else None
        if following is not task:
            if following is None:
                self._hub.switch()
            else:
                self.current = following
                following.greenlet.switch()
            if self.over or task.process.dead:
                raise greenlet.GreenletExit
        self.current = task

    def _next(self) -> Task | None:
        ready, draw = self._ready, self._draw
        while True:
            if self._timers and (self._timers[0][0] <= self.now or not ready):
                at, _number, wake = heapq.heappop(self._timers)
                self.now = max(self.now, at)
                wake()
                continue
            if not ready:
                return None
            index = int(draw() * len(ready))
            task = ready[index]
            if task.slow and draw() < task.slow and len(ready) > 1:
                continue
            ready[index] = ready[-1]
            ready.pop()
            process = task.process
            if process.frozen and not process.dead:
                process.held.append(task)
            elif not process.dead:
                return task

    # --- waiting -------------------------------------------------------------------------

    def park(self) -> None:
        """Wait until somebody wakes this task."""
        self._pass(self.current, "park")
        self._switch(self.current)

    def wake(self, task: Task) -> None:
        """Let *task*, which is parked, go on."""
        self._ready.append(task)

    def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            self.point("sleep")
            return
        task = self.current
        self.at(self.now + seconds, lambda: self._ready.append(task))
        self._pass(task, "sleep")
        self._switch(task)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call *call* then; it may not wait."""
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, call))

    def freeze(self, process: Process) -> None:
        process.frozen = True

    def thaw(self, process: Process) -> None:
        process.frozen = False
        self._ready.extend(process.held)
        process.held.clear()

    # --- the run -------------------------------------------------------------------------

    def run(self) -> None:
        """Run until nobody has anything to do, something fails, or :meth:`end`."""
        while self.failure is None and not self.over and self.steps < self.most_steps:
            task = self._next()
            if task is None:
                break
            self.current = task
            task.greenlet.switch()
        self.end()
        for task in self._tasks:
            if not task.greenlet.dead:
                self.current = task
                task.greenlet.throw()
        if self.failure is not None:
            raise self.failure

    def end(self) -> None:
        """End the run: whoever goes on is ended."""
        self.over = True

    def fail(self, what: str, text: str) -> None:
        self.failure = self.failure or Violation(what, text)
        self.over = True
        if greenlet.getcurrent() is not self._hub:
            raise greenlet.GreenletExit


# --- locks ----------------------------------------------------------------------------------


class Lock:
    """``threading.RLock`` and ``Lock`` for tasks."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._owner: Task | None = None
        self._depth = 0
        self._waiting: list[Task] = []

    def acquire(self) -> bool:
        kernel = self._kernel
        if self._owner is not kernel.current:
            kernel.point("lock")
            while self._owner is not None:
                self._waiting.append(kernel.current)
                kernel.park()
            self._owner = kernel.current
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            for task in self._waiting:
                self._kernel.wake(task)
            self._waiting.clear()

    __enter__ = acquire

    def __exit__(self, *_error: object) -> None:
        self.release()


class Condition(Lock):
    """``threading.Condition`` for tasks."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._sleeping: list[Task] = []

    def wait(self) -> None:
        self._sleeping.append(self._kernel.current)
        depth, self._depth = self._depth, 1
        self.release()
        self._kernel.park()
        self.acquire()
        self._depth = depth

    def notify_all(self) -> None:
        for task in self._sleeping:
            self._kernel.wake(task)
        self._sleeping.clear()
