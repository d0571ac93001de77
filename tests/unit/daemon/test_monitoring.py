"""One worker's endpoint, asked over HTTP while it comes up."""

import contextlib
import json
import os
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.daemon.health import WorkerHealth
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.reload import Outcome
from scheduler.daemon.worker_table import Stage, WorkerTable
from scheduler.explain.recorder import Recorder
from scheduler.rpc.in_flight import InFlightRequests
from scheduler.status_page.page import StatusPage
from scheduler.web import server
from scheduler.web.workers import Answer
from tests.pages import ROOT
from tests.unit.web.asking import ask


class Served:
    """The monitoring that is served, of a worker that is starting."""

    def __init__(self):
        self.listening = server.bind("127.0.0.1", 0, "[x] y")
        self.monitoring = Monitoring(self.listening)
        self.health = WorkerHealth(InFlightRequests(), 30.0, lambda: Stage.STARTING)

    def ask(self, target, method="GET"):
        return ask(self.listening, target, method)

    def metrics(self):
        families = text_string_to_metric_families(self.ask("/metrics").body.decode())
        return {
            (sample.name.removeprefix("nova_scheduler_"), *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }

    def failing(self, path):
        reply = self.ask(path)
        checks = json.loads(reply.body)["checks"]
        failing = [check["name"] for check in checks if check["status"] == "fail"]
        assert reply.status == (503 if failing else 200)
        return failing


def folders():
    """Those of this process, and of killed ones that had its number before."""
    return set(Path("/tmp").glob(f"nova-scheduler-{os.getpid()}-*"))


@pytest.fixture
def served():
    made, before = Served(), folders()
    with contextlib.ExitStack() as ending:
        made.monitoring.serve(made.health, WorkerTable(), ending)
        yield made
    made.monitoring.close()
    assert folders() <= before


def a_manager():
    driver = SimpleNamespace(host_manager=SimpleNamespace())
    return SimpleNamespace(driver=driver, recorder=Recorder(), replies=SimpleNamespace(repeated=4))


def test_the_page_lists_every_path(served):
    monitoring = served.monitoring
    StatusPage(monitoring.workers, monitoring.hub, lambda: None).add_to(monitoring.routes)
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    cells = " ".join(re.findall(r"^\| (`/.*?) \|", page, re.MULTILINE))
    inner, paths = ("/worker/", "/status/worker"), served.ask("/").body.decode().split()
    listed = {*re.findall(r"`(/[a-z/]*)", cells)} - {*inner}
    assert {each for each in paths if not each.startswith(inner)} == listed


def test_while_it_starts(served):
    assert served.failing("/healthz") == []
    assert served.failing("/readyz") == ["stage", "snapshot", "consumer"]
    metrics = served.metrics()
    assert metrics["consumer_up",] == 0
    assert metrics["workers", "alive"] == 1
    assert metrics["decisions_total", "selected"] == 0


def test_a_worker_that_turns_a_question_away_counts_as_silent(served, monkeypatch):
    busy = Answer(1, 503, server.BUSY.body)
    monkeypatch.setattr(served.monitoring.workers, "ask", lambda _target: [busy])
    assert served.failing("/healthz") == ["answers"]


@pytest.mark.parametrize("outcome", Outcome)
def test_reloads(served, outcome):
    successful = outcome is not Outcome.REFUSED
    assert served.metrics()["reloads_total", outcome.value] == 0
    served.monitoring.reloaded(outcome)
    metrics = served.metrics()
    assert metrics["reloads_total", outcome.value] == 1
    assert metrics["last_reload_successful",] == successful
    assert served.monitoring.is_reload_refused is not successful


def test_two_that_ask_at_once_take_turns(served):
    both, met = threading.Barrier(2), []

    def meet(_samples):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)
            met.append("two at once")

    served.monitoring._readings.append(meet)
    threads = [threading.Thread(target=served.ask, args=("/worker/write",)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert both.broken
    assert not met


def test_without_an_address_nothing_is_counted():
    before = signal.getsignal(signal.SIGUSR2)
    off, manager = Monitoring(), a_manager()
    with contextlib.ExitStack() as ending:
        off.serve(
            WorkerHealth(InFlightRequests(), 30.0, lambda: Stage.SERVING), WorkerTable(), ending
        )
        off.watch_manager(manager, None, None)
        off.reloaded(Outcome.APPLIED)
    off.close()
    assert not off.is_enabled
    assert manager.recorder.listeners == []
    assert signal.getsignal(signal.SIGUSR2) is before
