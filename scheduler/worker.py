"""The life of a process of any program here: started in steps, ended in the reverse order.

Reference page service, sections 2 and 3.  The launcher of either back end calls start, wait,
stop and reset; everything that connects is made in start, as the process may have been forked
before.
"""

from __future__ import annotations

import abc
import contextlib
import faulthandler
import os
import threading
from typing import ClassVar

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import service as oslo_service

import scheduler
from scheduler import exit_codes
from scheduler.board import Stage
from scheduler.concurrency import BREATHS
from scheduler.progress import Progress
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.supervision import Supervision
from scheduler.watchdog import Report, Watchdog

LOG = logging.getLogger(__name__)


class Worker(oslo_service.ServiceBase):
    """One process of a program whose *topic* is its name in the log."""

    DECISIONS: ClassVar[frozenset[str]] = frozenset()
    """The RPC methods that are counted as decisions."""

    def __init__(
        self, conf: cfg.ConfigOpts, readiness: Readiness, supervision: Supervision, topic: str
    ) -> None:
        self._conf = conf
        self._topic = topic
        self._readiness = readiness
        self._supervision = supervision
        self._progress = Progress(self.DECISIONS)
        self._watchdog: Watchdog | None = None
        self._ending = contextlib.ExitStack()
        self._is_stopping = False
        self._stopped = threading.Event()

    @property
    def stage(self) -> Stage:
        """How far the worker is."""
        return Stage.STARTING if self._watchdog is None else self._watchdog.stage

    @abc.abstractmethod
    def _start(self, ending: contextlib.ExitStack) -> None:
        """Start everything; *ending* learns, step by step, how to end it."""

    def _reload(self) -> None:
        """Take over what changed in the configuration: nothing, unless a program says more."""

    def _report(self) -> Report:
        """How the worker is, for people and for the watchdog; asked every few seconds."""
        return Report()

    def start(self) -> None:
        """Begin, and say so; any error ends the worker."""
        LOG.info("Starting %s node (version %s)", self._topic, scheduler.__version__)
        BREATHS.tell(self._progress.breath)
        watchdog = Watchdog(self._readiness, self._supervision.board, self._progress, self._report)
        watchdog.start()
        try:
            with contextlib.ExitStack() as ending:
                self._start(ending)
                self._ending = ending.pop_all()
        except transport.REFUSALS as refusal:
            watchdog.stop()
            self._failed()
            LOG.critical("%s: the broker refuses this service: %s", transport.OPTION, refusal)
            raise SystemExit(exit_codes.FAILURE) from None
        except BaseException:
            watchdog.stop()
            self._failed()
            raise
        self._supervision.worker_started()
        self._watchdog = watchdog
        watchdog.enter(Stage.SERVING)
        LOG.info("Serving requests on topic %s as %s", self._topic, self._conf.host)

    def _failed(self) -> None:
        if not self._is_stopping:
            self._supervision.worker_failed()
        self._stopped.set()

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
            self._stopped.set()

    def wait(self) -> None:
        """Return when the worker has stopped, or could not start."""
        self._stopped.wait()

    def reset(self) -> None:
        """Take over what changed in the configuration, and tell the service manager meanwhile."""
        if self._watchdog is None or self._is_stopping:
            return
        self._watchdog.enter(Stage.RELOADING)
        try:
            self._reload()
        finally:
            self._watchdog.enter(Stage.SERVING)


def launch(conf: cfg.ConfigOpts, worker: Worker, supervision: Supervision, workers: int) -> int:
    """Run *worker*, or *workers* forks of it (0: one per CPU), to the end; returns the status."""
    count = workers or os.cpu_count() or 1
    supervision.expect(count)
    faulthandler.enable()  # how the watchdog ends a worker that hangs shows where it hung
    launcher = oslo_service.launch(conf, worker, workers=count, restart_method="mutate")
    try:
        status = launcher.wait()
    except SystemExit as ending:  # how the threading launcher of several workers returns
        status = ending.code
    if supervision.has_failed:
        return exit_codes.FAILURE
    return int(status or exit_codes.OK)
