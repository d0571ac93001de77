"""The life of a process of any program here: started in steps, ended in the reverse order.

Reference page service, sections 2 and 3.  The launcher of either back end calls start, wait,
stop and reset; everything that connects is made in start, as the process may have been forked
before.
"""

from __future__ import annotations

import abc
import contextlib
import os
import threading

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import service as oslo_service

import scheduler
from scheduler import exit_codes
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.supervision import Supervision

LOG = logging.getLogger(__name__)


class Worker(oslo_service.ServiceBase):
    """One process of a program whose *topic* is its name in the log."""

    def __init__(
        self, conf: cfg.ConfigOpts, readiness: Readiness, supervision: Supervision, topic: str
    ) -> None:
        self._conf = conf
        self._topic = topic
        self._readiness = readiness
        self._supervision = supervision
        self._ending = contextlib.ExitStack()
        self._is_stopping = False
        self._stopped = threading.Event()

    @abc.abstractmethod
    def _start(self, ending: contextlib.ExitStack) -> None:
        """Start everything; *ending* learns, step by step, how to end it."""

    def start(self) -> None:
        """Begin, and say so; any error ends the worker."""
        LOG.info("Starting %s node (version %s)", self._topic, scheduler.__version__)
        try:
            with contextlib.ExitStack() as ending:
                self._start(ending)
                self._ending = ending.pop_all()
        except transport.REFUSALS as refusal:
            self._failed()
            LOG.critical("%s: the broker refuses this service: %s", transport.OPTION, refusal)
            raise SystemExit(exit_codes.FAILURE) from None
        except BaseException:
            self._failed()
            raise
        self._supervision.worker_started()
        self._readiness.announce()
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
        try:
            self._ending.close()
        except Exception:
            LOG.exception("Something could not be ended properly")
        finally:
            self._stopped.set()

    def wait(self) -> None:
        """Return when the worker has stopped, or could not start."""
        self._stopped.wait()

    def reset(self) -> None:
        """Take over what changed in the configuration: nothing, unless a program says more."""


def launch(conf: cfg.ConfigOpts, worker: Worker, supervision: Supervision, workers: int) -> int:
    """Run *worker*, or *workers* forks of it (0: one per CPU), to the end; returns the status."""
    count = workers or os.cpu_count() or 1
    launcher = oslo_service.launch(conf, worker, workers=count, restart_method="mutate")
    try:
        status = launcher.wait()
    except SystemExit as ending:  # how the threading launcher of several workers returns
        status = ending.code
    if supervision.has_failed:
        return exit_codes.FAILURE
    return int(status or exit_codes.OK)
