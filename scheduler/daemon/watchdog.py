"""Tells the service manager how the workers are, and that all of them get on.

Every worker looks at itself, and shows a heartbeat in the worker table only if it is well; then it
looks at the heartbeats of all.  Whoever finds that every worker has shown one in time feeds the
watchdog, so one that hangs starves it, however many others are well.  The thread that looks is
native: a decision that computes for seconds delays no heartbeat, and is found to be stuck by the
time it takes.
"""

import faulthandler
import math
import os
import signal
import socket
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Final

from oslo_log import log as logging

from scheduler.concurrency import native
from scheduler.daemon.periodic import RepeatingTask
from scheduler.daemon.worker_table import Heartbeat, Stage, WorkerTable, is_other_worker
from scheduler.rpc.in_flight import InFlightRequests

LOG = logging.getLogger(__name__)

VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLES = ("WATCHDOG_USEC", "WATCHDOG_PID")
SEND_SECONDS = 1.0
"""Longest time that a message waits for a service manager that does not read."""

LOOK_SECONDS: Final = 5.0
"""The longest time between two looks."""
LOOKS_PER_WATCHDOG: Final = 8
"""Of which half may be missing before a worker is taken for hung."""
WHERE: Final = signal.SIGUSR1
"""Has a worker write its stack to standard error; it works while a loop hangs."""


class Readiness:
    """The line to the service manager; without one nothing is said (page service, 8.4).

    The libraries announce readiness when they begin to start the service, so the address of the
    socket is taken out of their sight; they know nothing of watchdogs.
    """

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        """Takes the variables out of *environ*, which is the process's own unless given."""
        environ = os.environ if environ is None else environ
        microseconds, pid = (environ.pop(name, None) for name in WATCHDOG_VARIABLES)
        self._is_failing = False
        address = environ.pop(VARIABLE, None)
        self._socket = None if address is None else _connected(address)
        self.watchdog_seconds: float | None = None
        """Within which time a service manager wants to hear that all is well; None: it does not."""
        if microseconds and pid in (None, str(os.getpid())) and self.is_awaited:
            self.watchdog_seconds = int(microseconds) / 1e6

    @property
    def is_awaited(self) -> bool:
        return self._socket is not None

    def tell(self, *assignments: str) -> None:
        """Send *assignments* of the protocol in one message."""
        if self._socket is None:
            return
        try:
            self._socket.sendall("\n".join(assignments).encode())
        except OSError as error:
            if not self._is_failing:
                LOG.warning("The service manager does not take messages: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False


def _connected(address: str) -> socket.socket | None:
    """A socket to *address*, where ``@`` is an abstract one; None if nobody listens there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(SEND_SECONDS)
    try:
        made.connect(f"\0{address[1:]}" if address.startswith("@") else address)
    except OSError as error:
        LOG.warning("%s = %s: %s; no service manager is notified", VARIABLE, address, error)
        made.close()
        return None
    return made


class Watchdog:
    """The watchdog of one worker with *in_flight* requests, which listens for more, or not."""

    def __init__(
        self,
        readiness: Readiness,
        table: WorkerTable,
        in_flight: InFlightRequests,
        is_listening: Callable[[], bool],
    ) -> None:
        self.stage = Stage.NONE
        """Stage that the worker has reached."""
        self._readiness = readiness
        self._table = table
        self._in_flight = in_flight
        self._is_listening = is_listening
        self._limit_seconds = readiness.watchdog_seconds
        self._is_ill = False
        self._asked: set[int] = set()
        self._turned_at = math.inf
        self._look_seconds = min(
            LOOK_SECONDS, (self._limit_seconds or math.inf) / LOOKS_PER_WATCHDOG
        )
        threads = native("threading")
        self._looks = RepeatingTask("watchdog", self.look, self._look_seconds, threads=threads)
        #: Shows that the hub turns: under eventlet this one is a greenlet.
        self._turns = RepeatingTask("turns of the watchdog", self._turn, self._look_seconds)

    def start(self) -> None:
        """Take a place in the worker table; look regularly if a service manager listens."""
        self._table.join()
        self.enter(Stage.STARTING)
        if self._readiness.is_awaited:
            faulthandler.register(WHERE, all_threads=False)
            self._looks.start(self._look_seconds)
            self._turn()
            self._turns.start(self._look_seconds)

    def enter(self, stage: Stage) -> None:
        """Show that the worker is at *stage*; tell of it if that concerns the whole daemon."""
        before, self.stage = self.stage, stage
        if stage is Stage.RELOADING:
            began = f"MONOTONIC_USEC={time.monotonic_ns() // 1000}"
            self._readiness.tell("RELOADING=1", began)
        self.look()
        if stage is Stage.SERVING and self._is_daemon_ready(before):
            self._readiness.tell("READY=1", self._status())

    def _is_daemon_ready(self, before: Stage) -> bool:
        """True when this worker, coming from stage *before*, was the last to be waited for."""
        if before is Stage.RELOADING:
            return all(each.stage != Stage.RELOADING for each in self._table.heartbeats())
        return self._table.is_complete()

    def stop(self) -> None:
        """End the looks; may be called without a start."""
        self._looks.stop()
        self._turns.stop()

    def look(self) -> None:
        """Show a heartbeat if this worker is well, feed the watchdog if all do, tell the status."""
        if self._is_well():
            self._table.beat(Heartbeat(self.stage, self._table.clock(), os.getpid()))
        assignments = [self._status()]
        if self._limit_seconds is not None:
            stale = self._table.stale(self._limit_seconds / 2)
            if not stale:
                assignments.append("WATCHDOG=1")
            for pid in {each.pid for each in stale} - self._asked:
                if is_other_worker(pid):
                    self._asked.add(pid)
                    LOG.critical("Worker %d gives no sign of life.", pid)
                    os.kill(pid, WHERE)  # once
        self._readiness.tell(*assignments)

    def _turn(self) -> None:
        self._turned_at = self._table.clock()

    def _is_well(self) -> bool:
        illness = self._illness()
        if illness is not None and not self._is_ill:
            LOG.critical("This worker is stuck: %s. The service manager is to end it.", illness)
            if self._readiness.is_awaited:
                faulthandler.dump_traceback()
        self._is_ill = illness is not None
        return not self._is_ill

    def _illness(self) -> str | None:
        """The reason for which this worker is to be ended; None if it is well."""
        limit_seconds = self._limit_seconds
        if limit_seconds is None:
            return None
        stuck_seconds = self._in_flight.stuck_for(limit_seconds)
        if stuck_seconds is not None:
            return f"a request has not moved for {stuck_seconds:.0f} s"
        if self.stage is Stage.SERVING and not self._is_listening():
            return "nothing listens to the message bus any more"
        still_seconds = self._table.clock() - max(self._turned_at, self._in_flight.moved_at)
        if still_seconds > limit_seconds:
            return f"nothing has moved for {still_seconds:.0f} s"
        return None

    def _status(self) -> str:
        return "STATUS=" + status(self._table.heartbeats())


def status(heartbeats: Sequence[Heartbeat]) -> str:
    count = len(heartbeats)
    serving = sum(each.stage in (Stage.SERVING, Stage.RELOADING) for each in heartbeats)
    workers = "1 worker" if count == 1 else f"{count} workers"
    return workers if serving == count else f"{serving} of {workers} serving"
