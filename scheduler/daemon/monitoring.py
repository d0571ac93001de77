"""Metrics, health and the status page over HTTP: one address, and behind it every worker."""

import contextlib
import functools
import http
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from oslo_config import cfg
from oslo_log import log as logging

import scheduler
from scheduler import concurrency
from scheduler.concurrency import HubCalls
from scheduler.daemon.health import Check, Status, WorkerHealth
from scheduler.daemon.periodic import RepeatingTask
from scheduler.daemon.reload import Outcome
from scheduler.daemon.reports import Reports
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db.overview import Overview
from scheduler.metrics import catalogue, readings
from scheduler.metrics.counters import Counters
from scheduler.metrics.samples import Samples, Snapshots, render
from scheduler.web import server
from scheduler.web.server import KnownNames, Request, Response, Routes, Server
from scheduler.web.workers import Workers

LOG = logging.getLogger(__name__)

OPTION: Final = "[metrics_endpoint] host, port"
WRITE_SECONDS: Final = 2.0
"""Longest time between two writes of a worker's metrics, also when nobody asks: this is what
remains of one that is killed."""
_WRITE: Final = "/worker/write"
HUB_SECONDS: Final = 1.5
"""Longest wait of an answer that needs the hub: less than the other workers wait."""

Reading = Callable[[Samples], None]
"""Puts what it reads somewhere into the samples; called every few seconds."""


class Monitoring:
    """The address and the private folder that all workers share; made before they are forked.

    ``routes`` are this process's; ``workers`` are there to be asked; ``counters`` are those of
    this worker; ``reports`` are written on a signal, whether or not anything is served.  Without
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
        self._folder = None
        if listening is not None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"nova-scheduler-{self._master_pid}-"))
        self.routes = Routes()
        self.hub = HubCalls(HUB_SECONDS)
        self.workers = Workers(self._folder)
        self.counters = Counters()
        for outcome in Outcome:
            self.counters.set(catalogue.RELOADS, 0, outcome.value)
        self._readings: list[Reading] = [self.counters.write_to, readings.read_process]
        #: Found out for whoever asks.
        self._read_capacity: Reading = lambda _samples: None
        self.is_reload_refused = False
        """True when the last reload was refused."""
        self.reports = reports or Reports()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, program: str) -> Self:
        """As ``[metrics_endpoint]`` and ``[oslo_reports]`` say; ConfigurationError if it cannot be.

        Reports of *program* are written on the signal from now on.
        """
        reports = Reports()
        reports.install(conf, program)
        wanted = conf.metrics_endpoint
        if not wanted.enabled:
            return cls(reports=reports)
        listening = server.bind(wanted.host, wanted.port, OPTION)
        host, port = listening.getsockname()[:2]
        LOG.info("Metrics and health are served at http://%s/", server.at(host, port))
        return cls(listening, reports, KnownNames(wanted.allowed_hosts, wanted.host))

    @property
    def is_enabled(self) -> bool:
        return self._listening is not None

    def serve(self, health: WorkerHealth, table: WorkerTable, ending: contextlib.ExitStack) -> None:
        """Answer, in one of the workers of *table*, until *ending*; all have the same address."""
        if self._listening is None or self._folder is None:
            return
        self._readings += [
            functools.partial(readings.read_in_flight, in_flight=health.in_flight),
            lambda samples: readings.read_consumer(samples, health.consumer()),
        ]
        self.hub.start()
        self._serve_metrics(Snapshots(self._folder, table.place), table.workers, ending)
        for path, handler in {
            "/healthz": lambda _request: self._checks_of_all("/worker/healthz", table.workers),
            "/readyz": lambda _request: self._checks_of_all("/worker/readyz", table.workers),
            "/worker/healthz": lambda _request: _response(list(map(asdict, health.liveness()))),
            "/worker/readyz": lambda _request: _response(list(map(asdict, health.readiness()))),
        }.items():
            self.routes.add(path, handler)
        self.workers.join(self.routes, ending)
        public = Server(self._listening, self.routes, "http", self._names)
        public.start()
        ending.callback(public.stop)

    def _serve_metrics(
        self, snapshots: Snapshots, count: int, ending: contextlib.ExitStack
    ) -> None:
        """Write this worker's samples regularly, and serve those of all *count* workers."""
        writing = threading.Lock()

        def write() -> None:
            with writing:
                samples = Samples()
                for read in list(self._readings):
                    read(samples)
                snapshots.write(samples)

        def write_now(_request: Request) -> Response:
            self.hub.call(write)
            return Response.of_text("written")

        def answer(request: Request) -> Response:
            self.workers.ask(_WRITE)
            samples, alive = snapshots.together()
            samples.set(catalogue.WORKERS, count, "configured")
            samples.set(catalogue.WORKERS, alive, "alive")
            with contextlib.suppress(TimeoutError):  # a decision takes long: without them, then
                self.hub.call(self._read_capacity, samples)
            body, content_type = render(samples, request.headers.get("accept", ""))
            return Response(body, content_type)

        write()
        task = RepeatingTask("metrics", write, WRITE_SECONDS)
        task.start(WRITE_SECONDS)
        ending.callback(write)  # a last time
        ending.callback(task.stop)
        self.routes.add("/metrics", answer)
        self.routes.add(_WRITE, write_now)

    def watch_manager(self, manager: Any, conf: cfg.ConfigOpts, overview: Overview) -> None:
        """Count what *manager* decides, and what reading the hosts costs.

        *overview* has the flavors that still fit, or not.
        """
        if not self.is_enabled:
            return
        hosts, zone = manager.driver.host_manager, conf.default_availability_zone
        self._read_capacity = lambda samples: readings.read_capacity(
            samples, hosts, zone, overview.latest()["flavors"]
        )
        manager.recorder.listeners.append(self.counters.decided)
        hosts.read_listeners.append(self.counters.read)
        name = type(getattr(manager.driver, "driver", manager.driver)).__name__
        labels = scheduler.__version__, name, conf.scheduler.claims, concurrency.current()
        self._readings += [
            functools.partial(readings.read_manager, manager=manager),
            lambda samples: samples.set(catalogue.BUILD_INFO, 1, *labels),
        ]

    def watch(self, read: Callable[[Samples, Any], None], part: Any) -> None:
        """Measure *part* with *read*, a function of ``readings``."""
        if self.is_enabled:
            self._readings.append(lambda samples: read(samples, part))

    def reloaded(self, outcome: Outcome) -> None:
        self.is_reload_refused = outcome is Outcome.REFUSED
        self.counters.count(catalogue.RELOADS, outcome.value)
        self.counters.set(catalogue.RELOAD_OK, not self.is_reload_refused)
        self.counters.set(catalogue.RELOAD_AT, time.time())

    def _checks_of_all(self, target: str, count: int) -> Response:
        """The checks of every worker, each of which knows its own."""
        answers = self.workers.ask(target)
        answering = sum(each.status is not None for each in answers)
        status = Status.PASS if answering >= count else Status.FAIL
        checks = [asdict(Check("workers", status, f"{answering} of {count} answer"))]
        silent = [asdict(Check("answers", Status.FAIL, "does not answer in time"))]
        for answer in answers:
            is_told = answer.body.startswith(b"{")  # else it is silent, or too many ask it
            found = json.loads(answer.body)["checks"] if is_told else silent
            checks += [{**each, "worker": answer.pid} for each in found]
        return _response(checks)

    def close(self) -> None:
        """Leave nothing behind; called when the workers have ended."""
        if os.getpid() != self._master_pid:
            return
        if self._listening is not None:
            self._listening.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)


def _response(checks: list[dict[str, Any]]) -> Response:
    overall = max((each["status"] for each in checks), key=list(Status).index)  # the worst
    is_bad = overall == Status.FAIL
    status = http.HTTPStatus.SERVICE_UNAVAILABLE if is_bad else http.HTTPStatus.OK
    return Response.of_json({"status": overall, "checks": checks}, status)
