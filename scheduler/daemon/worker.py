"""The life of a process of any program here: started in steps, ended in the reverse order.

Reference page service, sections 2 and 3.  The launcher of either back end calls start, wait,
stop and reset; whatever connects is made in start, as the process may have been forked.
"""

import abc
import contextlib
import faulthandler
import os
import signal
import threading
from pathlib import Path
from typing import ClassVar

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import service as oslo_service

import scheduler
from scheduler import concurrency, errors, exit_codes
from scheduler.conf import rereading, startup
from scheduler.conf.names import Name
from scheduler.daemon import preflight
from scheduler.daemon.reload import Outcome, PutInForce, Reloading, watch_sighup
from scheduler.daemon.watchdog import Readiness, Watchdog
from scheduler.daemon.worker_table import Stage, WorkerTable
from scheduler.rpc import transport
from scheduler.rpc.in_flight import InFlightRequests

LOG = logging.getLogger(__name__)


class Worker(oslo_service.ServiceBase):
    """One process of a program whose *topic* is its name in the log."""

    LIVE: ClassVar[frozenset[Name]] = rereading.LIVE_LOGGING
    """The options that a reload changes; the others need a restart."""

    def __init__(
        self, conf: cfg.ConfigOpts, readiness: Readiness, table: WorkerTable, topic: str
    ) -> None:
        self.table = table
        self._conf = conf
        self._topic = topic
        self._readiness = readiness
        self._in_flight = InFlightRequests()
        self._watchdog: Watchdog | None = None
        self._ending = contextlib.ExitStack()
        self._is_stopping = False
        self._stopped = threading.Event()
        self._reloading: Reloading | None = None

    @property
    def conf_in_force(self) -> cfg.ConfigOpts:
        """The configuration as it was last read with success."""
        return self._conf if self._reloading is None else self._reloading.conf

    def reload_from(self, source: startup.Source) -> None:
        """Let SIGHUP read again what *source* names."""
        self._reloading = Reloading(source, self._conf, self.LIVE)

    @property
    def stage(self) -> Stage:
        return Stage.STARTING if self._watchdog is None else self._watchdog.stage

    @abc.abstractmethod
    def _start(self, ending: contextlib.ExitStack) -> None:
        """Start everything; *ending* learns, step by step, how to end it."""

    def _build(self, conf: cfg.ConfigOpts) -> PutInForce:
        """Build what *conf* makes necessary, and return what puts that in force.

        Without a program's own there is nothing but logging, which is not its business.  In the
        master of several processes only what can be built without a connection is.
        """
        del conf
        return lambda: None

    def _reloaded(self, outcome: Outcome) -> None:
        """Notified of each reload of this process."""

    def _is_listening(self) -> bool:
        """True when requests would be taken from the bus, once it answers."""
        return True

    def start(self) -> None:
        """Begin, and say so; any error ends the worker."""
        LOG.info("Starting %s node (version %s)", self._topic, scheduler.__version__)
        watchdog = Watchdog(self._readiness, self.table, self._in_flight, self._is_listening)
        watchdog.start()
        try:
            with contextlib.ExitStack() as ending:
                self._start(ending)
                self._ending = ending.pop_all()
        except BaseException as error:
            # First of all: whoever hears of the failure ends this process.
            if isinstance(error, transport.REFUSALS):
                reason = f"the broker refuses this service: {error}"
                refusal = errors.ConfigurationError(option=transport.OPTION, reason=reason)
                preflight.refuse(self._conf, self._conf.prog, refusal)
            elif isinstance(error, Exception):
                LOG.exception("This worker cannot start")
            watchdog.stop()
            if not self._is_stopping:
                self.table.worker_failed()
            self._stopped.set()
            if isinstance(error, Exception):
                raise SystemExit(exit_codes.FAILURE) from None
            raise
        self.table.worker_started()
        self._watchdog = watchdog
        watchdog.enter(Stage.SERVING)
        watch_sighup(self.reset)
        LOG.info("Serving requests on topic %s as %s", self._topic, self._conf.host)

    def stop(self, graceful: bool = True) -> None:
        """Take no more requests, finish those in hand, then end the rest.

        May be called more than once, and without a start.  The launcher ends the process when
        this takes longer than ``graceful_shutdown_timeout``.
        """
        del graceful
        if self._is_stopping:
            return
        self._is_stopping = True
        LOG.info("nova-%s service graceful shutdown started.", self._topic)
        if self._watchdog is not None:
            self._watchdog.enter(Stage.STOPPING)
        try:
            self._ending.close()
        except Exception:
            LOG.exception("Something could not be ended properly")
        finally:
            if self._watchdog is not None:
                self._watchdog.stop()
            LOG.info("nova-%s service graceful shutdown finished.", self._topic)
            self._stopped.set()

    def wait(self) -> None:
        """Return when the worker has stopped, or could not start."""
        self._stopped.wait()

    def reset(self) -> None:
        """Take over what changed in the configuration, and tell the service manager meanwhile."""
        if self._watchdog is None or self._is_stopping or self._reloading is None:
            return
        self._watchdog.enter(Stage.RELOADING)
        try:
            outcome = self._reloading.reload(self._build, warns=not self.table.place)
            self._reloaded(outcome)
        finally:
            self._watchdog.enter(Stage.SERVING)

    def reset_forks(self) -> None:
        """Prepare the next forks for what changed, in the master, and pass SIGHUP on to these."""
        if self._reloading is not None:
            self._reloading.prepare_forks(self._build)
        for forks in Path("/proc/self/task").glob("*/children"):  # of each thread
            for pid in forks.read_text(encoding="ascii").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGHUP)


def launch(conf: cfg.ConfigOpts, worker: Worker) -> int:
    """Run *worker*, or as many forks of it as its table has places; returns the exit status."""
    count = worker.table.workers
    faulthandler.enable()  # how the watchdog ends a worker that hangs shows where it hung
    if count > 1 or concurrency.current() == concurrency.THREADING:  # this is no worker itself
        watch_sighup(worker.reset_forks)
    launcher = oslo_service.launch(conf, worker, workers=count, restart_method="mutate")
    try:
        status = launcher.wait()
    except SystemExit as ending:  # how the threading launcher of several workers returns
        status = ending.code
    if worker.table.has_failed:
        return exit_codes.FAILURE
    return int(status or exit_codes.OK)
