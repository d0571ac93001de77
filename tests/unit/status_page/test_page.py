"""The routes of the page: files, one worker's state, and that of all workers."""

import json
import math
import os
import re
from types import SimpleNamespace

import pytest

from scheduler.concurrency import HubCalls
from scheduler.engine.evaluation import FilterChain
from scheduler.engine.record import DecisionRecord, Top, Verdicts
from scheduler.explain.recorder import Recorder
from scheduler.filters.ram_filter import RamFilter
from scheduler.status_page.live import DECISIONS_LISTED, LiveStatus
from scheduler.status_page.page import StatusPage
from scheduler.web.server import Routes
from scheduler.web.workers import Answer
from tests.builders import NOW, a_conf, a_host, a_request, candidates
from tests.unit.status_page.test_fleet import a_manager

FILES = ("status.html", "status.css", "status.js", "icon.svg")


class AnOverview:
    """Stands for what is read of a database."""

    def __init__(self):
        main = SimpleNamespace(masked_url="mysql+pymysql://***@db/nova")
        self.databases = SimpleNamespace(main=main)
        self.known = {"flavors": [a_request().flavor], "schedulers": [], "recorded": None}
        self.records = {}

    def latest(self):
        return {"error": None, **self.known}

    def decision(self, name):
        return self.records.get(name)


class OneWorker:
    """A worker with two hosts, its decisions and its routes."""

    def __init__(self, workers=None, pid=None):
        self.manager = a_manager("h1", "h2")
        self.manager.read_at = NOW - 1
        self.recorder = Recorder()
        driver = SimpleNamespace(host_manager=self.manager)
        manager = SimpleNamespace(driver=driver, recorder=self.recorder)
        self.overview = AnOverview()
        self.live = LiveStatus(a_conf(), manager, self.overview, clock=lambda: NOW)
        self.pid = self.live._identity["pid"] = pid or os.getpid()
        self.routes = Routes()
        workers = workers or OtherWorkers()
        workers.all[self.pid] = self
        self.page = StatusPage(workers, HubCalls(1.0), lambda: self.live)
        self.page.add_to(self.routes)

    def decide(self, request_id, **fields):
        self.recorder._finish(DecisionRecord(request_id, ("u1",), 1, 0, **fields))

    def get(self, target):
        return self.routes.answer("GET", target, {})

    def json(self, target):
        answer = self.get(target)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


class OtherWorkers:
    """Stands for the sockets of several workers: those silent do not answer."""

    def __init__(self):
        self.all = {}
        self.silent = set()

    @property
    def pids(self):
        return sorted({*self.all, *self.silent})

    def ask(self, target):
        return [self.ask_one(pid, target) for pid in self.pids]

    def ask_one(self, pid, target):
        if pid in self.silent:
            return Answer(pid, None)
        answer = self.all[pid].get(target)
        return Answer(pid, answer.status, answer.body)


@pytest.fixture
def worker():
    return OneWorker()


@pytest.fixture
def two():
    workers = OtherWorkers()
    first, second = (OneWorker(workers, pid) for pid in (11, 12))
    return SimpleNamespace(workers=workers, first=first, second=second)


# --- files -------------------------------------------------------------------------------


def test_the_page_loads_only_what_is_served(worker):
    page = worker.get("/status")
    assert (page.status, page.content_type) == (200, "text/html; charset=utf-8")
    linked = set(re.findall(r'(?:src|href)="(?!#|metrics)([^"]+)"', page.body.decode()))
    assert linked >= {"status/icon.svg", "status/status.css", "status/status.js"}
    seen, scripts = set(), {"status.js"}
    while scripts - seen:
        name = (scripts - seen).pop()
        seen.add(name)
        answer = worker.get(f"/status/{name}")
        assert (answer.status, answer.content_type) == (200, "text/javascript; charset=utf-8")
        scripts |= set(re.findall(r'from "\./([^"]+)"', answer.body.decode()))
    assert len(seen) > 5
    # All are fetched at once, and what the page shows with them.
    questions = {"status/live?pid=&amp;since=&amp;seen="}
    assert linked == {f"status/{name}" for name in seen | {"icon.svg", "status.css"}} | questions


@pytest.mark.parametrize("target", ["/status", *(f"/status/{name}" for name in FILES)])
def test_nothing_from_elsewhere_may_run(worker, target):
    answer = worker.get(target)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    text = answer.body.decode()
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert not re.search(r"\sstyle=|<style|<script>|\son\w+=", text)


@pytest.mark.parametrize(
    ("name", "status"),
    [*((n, 404) for n in ("x.js", "../live.py", "__init__.py", "%2e%2e/page.py")), ("", 308)],
)
def test_other_files_are_not_there(worker, name, status):
    answer = worker.get(f"/status/{name}")
    assert (answer.status, answer.headers.get("Location", "../status")) == (status, "../status")


# --- one worker --------------------------------------------------------------------------


def test_the_first_answer_tells_everything_and_the_next_what_is_new(worker):
    worker.decide("req-1", chosen=[("h1", "h1")])
    worker.decide("req-2", outcome="no_host_fits", failure="No valid host was found. ")
    told = worker.json("/status/live")
    (one,) = told["workers"]
    assert one["state_age_seconds"] == 1.0
    assert one["outcomes"] == {"selected": 1, "no_host_fits": 1}
    decisions = [(each["request_id"], each["hosts"]) for each in one["decisions"]["new"]]
    assert decisions == [("req-2", []), ("req-1", ["h1"])]
    assert told["fleet"]["columns"]["host"] == ["h1", "h2"]
    assert told["fleet"]["pid"] == one["pid"]

    worker.decide("req-3")
    worker.manager.table.update(1, {"free_ram_mb": 7})
    worker.live._fleet._read_at = 0.0
    query = f"since={told['fleet']['version']}&seen={one['id']}.{one['decisions']['last']}"
    told = worker.json(f"/status/live?{query}")
    (one,) = told["workers"]
    assert [each["request_id"] for each in one["decisions"]["new"]] == ["req-3"]
    assert told["fleet"]["columns"]["host"] == ["h2"]


@pytest.mark.parametrize(
    "seen", ["", "0123456789abcdef.1", "{id}.", "{id}", "{id}.1.1", "{id}.99999999999999999999999"]
)
def test_whoever_has_seen_nothing_of_ours_is_told_all(worker, seen):
    worker.decide("req-1")
    worker.decide("req-2")
    (one,) = worker.json(f"/status/live?seen={seen.format(id=worker.live._id)}")["workers"]
    assert len(one["decisions"]["new"]) == 2


@pytest.mark.parametrize("seen", ["x y", "%0d%0aHost:x", "<script>", "a%26pid=1"])
def test_what_cannot_be_a_list_is_refused_by_name(worker, seen):
    answer = worker.get(f"/status/live?seen={seen}")
    assert (answer.status, answer.body) == (400, b"seen: not a list of ID.NUMBER\n")


@pytest.mark.parametrize(
    "name", ["{id}.0", "{id}.3", "{id}.-1", "{id}", "", "0.1", "/../..", "{id}.1.1"]
)
def test_a_decision_that_is_kept_and_one_that_is_not(worker, name):
    worker.decide("req-1", chosen=[("h1", "n1")])
    worker.decide("req-2")
    for kept_as in (f"{worker.live._id}.1", "req-1"):
        kept = worker.json(f"/status/decisions/{kept_as}")
        assert (kept["request_id"], kept["chosen"]) == ("req-1", [{"host": "h1", "node": "n1"}])
    answer = worker.get(f"/status/decisions/{name.format(id=worker.live._id)}")
    assert (answer.status, json.loads(answer.body)) == (
        404,
        {"error": "not known here"},
    )


def test_a_weight_that_is_no_number_is_null(worker):
    worker.decide("req-1", top=Top([("h1", "n1")], [math.nan], []))
    assert worker.json("/status/decisions/req-1")["top"][0]["total"] is None


def test_the_list_has_an_end_and_numbers_go_on(worker):
    for number in range(DECISIONS_LISTED + 5):
        worker.decide(f"req-{number}")
    (one,) = worker.json("/status/live")["workers"]
    assert len(one["decisions"]["new"]) == DECISIONS_LISTED
    assert one["decisions"]["last"] == one["decisions"]["new"][0]["number"] == DECISIONS_LISTED + 5


def test_passwords_in_errors_are_not_shown(worker):
    worker.decide(
        "req-1", outcome="internal_fault", failure="mysql://nova:s3cret@db, password='s3cret'"
    )
    name = f"{worker.live._id}.1"
    for target in ("/status/live", f"/status/decisions/{name}"):
        assert b"password='***'" in worker.get(target).body


@pytest.mark.parametrize("target", ["live", "worker", "worker/fleet", "decisions/a.1", "hosts/h1"])
def test_a_worker_that_is_starting_says_so_and_has_its_files(worker, target):
    worker.live = None
    answer = worker.get(f"/status/{target}")
    assert (answer.status, json.loads(answer.body)) == (503, {"error": "the daemon is starting"})
    assert worker.get("/status").status == 200


# --- several workers ---------------------------------------------------------------------


def test_the_fleet_is_that_of_the_worker_asked_for(two):
    a_host("h3", "h3", table=two.second.manager.table)
    told = two.first.json("/status/live?pid=12")
    assert (told["fleet"]["pid"], told["fleet"]["columns"]["host"]) == (12, ["h1", "h2", "h3"])
    version = told["fleet"]["version"]
    told = two.first.json(f"/status/live?pid=12&since={version}")
    assert (told["fleet"]["is_full"], told["fleet"]["columns"]["host"]) == (False, [])


@pytest.mark.parametrize("pid", ["", "99", "-1", "x", "1e1", "١٢"])
def test_without_such_a_worker_it_is_whoever_is_asked(two, pid):
    assert two.first.json(f"/status/live?pid={pid}")["fleet"]["pid"] == 11


@pytest.mark.parametrize("is_starting", [False, True])
def test_a_worker_that_does_not_answer_or_is_starting_is_named(two, is_starting):
    version = two.first.json("/status/live?pid=12")["fleet"]["version"]
    if is_starting:
        two.second.live = None
    else:
        two.workers.silent.add(12)
    told = two.first.json(f"/status/live?pid=12&since={version}")
    assert told["workers"][1] == {"pid": 12, "is_silent": True}
    assert (told["fleet"]["pid"], told["fleet"]["is_full"]) == (11, True)


def test_decisions_of_another_worker(two):
    two.first.decide("req-1")
    two.second.decide("req-2")
    number = f"{two.second.live._id}.1"
    for name in (number, "req-2"):
        assert two.first.json(f"/status/decisions/{name}")["request_id"] == "req-2"
    assert two.first.get(f"/status/decisions/{two.second.live._id}.2").status == 404
    two.workers.silent.add(12)
    answer = two.first.get(f"/status/decisions/{number}")
    assert (answer.status, json.loads(answer.body)) == (504, {"error": "a worker does not answer"})
    record = {"request_id": "req-2", "error": "password='s3cret'", "cause": None}
    two.first.overview.records["req-2"] = record
    assert two.first.json("/status/decisions/req-2") == {**record, "error": "password='***'"}


def test_a_host_with_its_servers_and_its_fate(two):
    for each in (two.first, two.second):
        a_host("h2", "h2", table=each.manager.table, instances=["u1"])
    request, table = a_request(project_id="p1", availability_zone="z"), two.second.manager.table
    chain = FilterChain([RamFilter(a_conf())])
    two.first.decide("req-1", chosen=[("h2", "h2")] * 2, request=request)
    found = chain.run(candidates(table), a_request(flavor={"memory_mb": 9999}))
    verdicts = Verdicts.from_evaluation(found, chain.filters)
    two.second.decide("req-2", outcome="no_host_fits", verdicts=verdicts)
    told = two.first.json("/status/hosts/h2")["workers"]
    assert [each["uuid"] for each in told[0]["servers"]] == ["u1"]
    asked = {"flavor": "m1.tiny", "zone": "z", "project": "p1"}
    [[chosen], [removed]] = [each["decisions"] for each in told]
    assert {**chosen, "fate": "chosen", "times": 2, **asked} == chosen
    assert (removed["filter"], removed["reason"]) == ("RamFilter", "ram.physical")
    assert two.first.get("/status/hosts/h9").status == 404
