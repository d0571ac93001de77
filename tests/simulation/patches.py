"""The kernel's time, locks and sleep in place of the machine's, in the modules that use them."""

import contextlib
import datetime
import importlib
import random
import time
import types
from collections.abc import Iterator
from typing import Any

from tests.simulation.kernel import Condition, Kernel, Lock

EPOCH = 1_800_000_000.0
#: Modules that ask for the time, or wait.
_MODULES = (
    *("scheduler.hosts.refresh", "scheduler.hosts.host_manager", "scheduler.claims.reader"),
    *("scheduler.claims.shared_reservations", "scheduler.claims.writer", "scheduler.concurrency"),
    *("scheduler.claims.database", "scheduler.drivers.filter_scheduler", "scheduler.db.database"),
    *("scheduler.db.sessions", "scheduler.engine.decision", "scheduler.engine.evaluation"),
    *("scheduler.engine.record", "scheduler.hosts.candidates", "oslo_db.api"),
)


class Machine:
    """The modules ``time`` and ``threading`` of the task that asks; *kernel* is the run's."""

    kernel: Kernel

    def time(self) -> float:
        """The time of day on the clock of this process."""
        kernel = self.kernel
        return EPOCH + kernel.now + kernel.current.process.clock_off_seconds

    def monotonic(self) -> float:
        """A clock that never jumps."""
        return 1000.0 + self.kernel.now

    perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        self.kernel.sleep(seconds)

    def lock(self) -> Lock:
        return Lock(self.kernel)

    def condition(self) -> Condition:
        return Condition(self.kernel)


MACHINE = Machine()
_TIME = ("time", "monotonic", "perf_counter", "sleep")


def utc(seconds: float) -> datetime.datetime:
    """A time as columns hold it."""
    when = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return when.replace(tzinfo=None)


def _instead(module: types.ModuleType) -> dict[str, Any]:
    """Attributes of *module* that are others in a run."""
    clock = types.SimpleNamespace(**{name: getattr(MACHINE, name) for name in _TIME})
    locks = types.SimpleNamespace(
        Lock=MACHINE.lock, RLock=MACHINE.lock, Condition=MACHINE.condition
    )
    several = {"time": clock, "threading": locks}
    return {name: each for name, each in several.items() if hasattr(module, name)}


@contextlib.contextmanager
def attributes(owner: Any, **values: Any) -> Iterator[None]:
    """*owner* with other *values* of these attributes, until the end of the block."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """The machine of the runs in the product's modules, and in what they have for defaults."""
    replaced = {getattr(time, name): getattr(MACHINE, name) for name in _TIME}
    state = random.getstate()
    with contextlib.ExitStack() as stack:
        for name in _MODULES:
            module = importlib.import_module(name)
            stack.enter_context(attributes(module, **_instead(module)))
            for function in _functions(module):
                defaults = function.__defaults__ or ()
                others = tuple(_replaced(replaced, each) for each in defaults)
                if others != defaults:
                    stack.enter_context(attributes(function, __defaults__=others))
        stack.callback(random.setstate, state)
        yield


def _replaced(replaced: dict[Any, Any], value: Any) -> Any:
    return replaced.get(value, value) if isinstance(value, types.BuiltinFunctionType) else value


def _functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    for each in vars(module).values():
        if getattr(each, "__module__", None) != module.__name__:
            continue
        for one in vars(each).values() if isinstance(each, type) else (each,):
            if isinstance(one, types.FunctionType):
                yield one
