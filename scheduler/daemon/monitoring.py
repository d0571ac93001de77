"""What a daemon shows of itself over HTTP: one address, and behind it every worker."""

from __future__ import annotations

import contextlib
import functools
import http
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

import scheduler
from scheduler import concurrency
from scheduler.concurrency import HubCalls
from scheduler.daemon.health import Check, Status, WorkerHealth, worst
from scheduler.daemon.reports import Reports
from scheduler.metrics import catalogue, readings
from scheduler.metrics.counters import Counters
from scheduler.metrics.samples import Samples, render
from scheduler.metrics.snapshots import Snapshots
from scheduler.notifications.outbox import Outbox
from scheduler.web import server
from scheduler.web.folder import PrivateFolder
from scheduler.web.hosts import KnownNames
from scheduler.web.routes import Request, Response, Routes
from scheduler.web.server import Server
from scheduler.web.workers import Answer, Workers

LOG = logging.getLogger(__name__)

OPTION: Final = "[metrics_endpoint] host, port"
TELL_SECONDS: Final = 2.0
"""How often a worker tells what it has counted and measured, also when nobody asks: this is what
remains of one that is killed."""
_TELL: Final = "/worker/tell"
HUB_SECONDS: Final = 1.5
"""How long an answer that needs the hub waits for it: less than the other workers wait."""

APPLIED, RESTART_NEEDED, REFUSED = "applied", "restart_needed", "refused"
"""Outcomes of a reload: all of it works now; all but what is named; nothing has changed."""

Reading = Callable[[Samples], None]
"""Puts what it reads somewhere into the samples; called every few seconds."""


class Monitoring:
    """The address and the private folder that all workers share; made before they are forked.

    ``routes`` are this process's; ``workers`` are there to be asked; ``counters`` are those of
    this worker; ``reports`` are told on a signal, whether or not anything is served.  Without
    *listening* nothing is served or counted; all of it may be used all the same.  *names* are those
    that may be asked for.
    """

    def __init__(
        self,
        listening: socket.socket | None = None,
        reports: Reports | None = None,
        names: KnownNames | None = None,
    ) -> None:
        self._listening = listening
        self._names = names or KnownNames()
        self._master_pid = os.getpid()
        self._folder = None if listening is None else PrivateFolder()
        self.routes = Routes()
        self.hub = HubCalls(HUB_SECONDS)
        self.workers = Workers(None if self._folder is None else self._folder.path)
        self.counters = Counters()
        for outcome in (APPLIED, RESTART_NEEDED, REFUSED):
            self.counters.set(catalogue.RELOADS, 0, outcome)
        self._readings: list[Reading] = [self.counters.write_to, readings.read_process]
        self._is_served = self._is_reload_refused = False
        self.reports = reports or Reports()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, program: str) -> Monitoring:
        """As ``[metrics_endpoint]`` and ``[oslo_reports]`` say; ConfigurationError if it cannot be.

        Reports of *program* are told on the signal from now on.
        """
        reports = Reports()
        reports.install(conf, program)
        wanted = conf.metrics_endpoint
        if not wanted.enabled:
            return cls(reports=reports)
        listening = server.bind(wanted.host, wanted.port, OPTION)
        host, port = listening.getsockname()[:2]
        LOG.info("Metrics and health are served at http://%s/", server.at(host, port))
        return cls(listening, reports, KnownNames([wanted.host, *wanted.allowed_hosts]))

    @property
    def is_enabled(self) -> bool:
        """Whether anybody can look."""
        return self._listening is not None

    def is_reload_refused(self) -> bool:
        """Whether the last reload was refused."""
        return self._is_reload_refused

    def serve(self, health: WorkerHealth, workers: int, ending: contextlib.ExitStack) -> None:
        """Answer, in one of *workers* workers, until *ending*; all answer at the same address."""
        if self._listening is None or self._folder is None:
            return
        self._is_served = True
        self.counters.set(catalogue.STARTED_AT, time.time())
        self._readings += [
            functools.partial(readings.read_in_flight, in_flight=health.in_flight),
            lambda samples: readings.read_consumer(samples, health.consumer()),
        ]
        self.hub.start()
        told = _Told(self.workers, self.hub, Snapshots(self._folder.path), self._readings, workers)
        told.start(ending)
        checks = _Checks(self.workers, health, workers)
        for path, handler in (*told.routes(), *checks.routes()):
            self.routes.add(path, handler)
        self.workers.join(self.routes, ending)
        public = Server(self._listening, self.routes, "http", self._names)
        public.start()
        ending.callback(public.stop)

    def watch_manager(self, manager: Any, conf: cfg.ConfigOpts) -> None:
        """Count what *manager* decides, and what reading the hosts costs."""
        if not self._is_served:
            return
        manager.recorder.listeners.append(self.counters.decided)
        hosts = manager.driver.host_manager
        if hasattr(hosts, "read_listeners"):
            hosts.read_listeners.append(self.counters.read)
        name = type(getattr(manager.driver, "driver", manager.driver)).__name__
        labels = scheduler.__version__, name, conf.scheduler.claims, concurrency.current()
        self._readings += [
            functools.partial(readings.read_manager, manager=manager),
            lambda samples: samples.set(catalogue.BUILD_INFO, 1, *labels),
        ]

    def watch_notifications(self, outbox: Outbox) -> None:
        """Measure what *outbox* sends."""
        if not self._is_served:
            return
        self._readings.append(functools.partial(readings.read_notifications, sending=outbox))

    def reloaded(self, outcome: str) -> None:
        """The configuration was read again, and APPLIED, partly so, or REFUSED."""
        self.counters.count(catalogue.RELOADS, outcome)
        self.counters.set(catalogue.RELOAD_OK, outcome != REFUSED)
        self.counters.set(catalogue.RELOAD_AT, time.time())
        self._is_reload_refused = outcome == REFUSED

    def close(self) -> None:
        """Leave nothing behind; called when the workers have ended."""
        if os.getpid() != self._master_pid:
            return
        if self._listening is not None:
            self._listening.close()
        if self._folder is not None:
            self._folder.close()


class _Told:
    """The metrics: what this worker tells the others, and what all have told."""

    def __init__(
        self,
        workers: Workers,
        hub: HubCalls,
        snapshots: Snapshots,
        several: list[Reading],
        count: int,
    ) -> None:
        self._hub = hub
        self._workers = workers
        self._snapshots = snapshots
        self._readings = several
        self._count = count
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._telling = threading.Lock()

    def routes(self) -> Iterator[tuple[str, Callable[[Request], Response]]]:
        """What is answered: for all, and below ``/worker`` for this one alone."""
        yield "/metrics", self._metrics
        yield _TELL, self._tell_now

    def start(self, ending: contextlib.ExitStack) -> None:
        """Tell regularly, and a last time at the *ending*."""
        self._snapshots.retire()
        self._tell()
        self._thread.start()
        ending.callback(self._end)

    def _end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._tell()

    def _run(self) -> None:
        while not self._ended.wait(TELL_SECONDS):
            try:
                self._tell()
            except Exception:
                LOG.exception("This worker cannot tell its metrics")

    def _tell(self) -> None:
        with self._telling:
            samples = Samples()
            for read in list(self._readings):
                read(samples)
            self._snapshots.write(samples)

    def _tell_now(self, request: Request) -> Response:
        del request
        self._hub.call(self._tell)
        return Response.of_text("told")

    def _metrics(self, request: Request) -> Response:
        self._workers.ask(_TELL)
        samples, alive = self._snapshots.together()
        samples.set(catalogue.WORKERS, self._count, "configured")
        samples.set(catalogue.WORKERS, len(alive), "alive")
        body, content_type = render(samples, request.headers.get("accept", ""))
        return Response(body, content_type)


class _Checks:
    """Health and readiness: every worker's, of which each knows its own."""

    def __init__(self, workers: Workers, health: WorkerHealth, count: int) -> None:
        self._workers = workers
        self._health = health
        self._count = count

    def routes(self) -> Iterator[tuple[str, Callable[[Request], Response]]]:
        """What is answered: for all, and below ``/worker`` for this one alone."""
        yield "/healthz", lambda _request: self._all("/worker/healthz")
        yield "/readyz", lambda _request: self._all("/worker/readyz")
        yield "/worker/healthz", lambda _request: _checks(self._health.liveness())
        yield "/worker/readyz", lambda _request: _checks(self._health.readiness())

    def _all(self, target: str) -> Response:
        answers = self._workers.ask(target)
        answering = [each for each in answers if each.status is not None]
        checks = [self._number(len(answering))]
        for answer in answers:
            checks += _checks_of(answer)
        return _checks(checks)

    def _number(self, answering: int) -> Check:
        status = Status.PASS if answering >= self._count else Status.FAIL
        return Check("workers", status, f"{answering} of {self._count} answer")


def _checks_of(answer: Answer) -> Iterator[Check]:
    """What one worker said of itself."""
    if answer.status is None:
        yield Check("answers", Status.FAIL, "does not answer in time", answer.pid)
        return
    for plain in json.loads(answer.body)["checks"]:
        yield Check(plain["name"], Status(plain["status"]), plain["message"], answer.pid)


def _checks(checks: list[Check]) -> Response:
    overall = worst(checks)
    is_bad = overall is Status.FAIL
    document: dict[str, Any] = {
        "status": overall,
        "checks": [check.to_plain() for check in checks],
    }
    status = http.HTTPStatus.SERVICE_UNAVAILABLE if is_bad else http.HTTPStatus.OK
    return Response.of_json(document, status)
