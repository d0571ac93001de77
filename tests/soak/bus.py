"""A daemon as operators run it, and callers of every kind, over a real broker and database."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import configuration, install, servers
from benchmarks.fleet import FleetPlan
from scheduler.db.database import Database
from scheduler.rpc.client import worker_name
from tests.servers.rabbitmq import RabbitMQ
from tests.soak import look
from tests.soak.callers import Answer, Caller
from tests.soak.demands import Demand, Demands
from tests.soak.estate import Estate
from tests.soak.plan import Plan, settings
from tests.soak.verdict import Scale
from tests.world.deployment import Deployment

CALLERS: Final = 4
UNDER_WAY: Final = 2
#: Requests, less than it can do: tables of the last minutes would follow a rate that changes.
PER_SECOND: Final = 5.0
STEP_SECONDS: Final = 1.0
RELOAD_SECONDS, ASK_SECONDS, DIE_SECONDS, CAST_SECONDS = 60.0, 7.0, 20.0, 3.0
#: The broker's own command takes seconds of processor time.
BROKER_SECONDS: Final = 45.0
HOST: Final = "soak"
#: Closed claims stay for five minutes, and are deleted up to a minute later.
SCALE: Final = Scale(least_of={"rows claims": 420.0})
MULTIPLIERS: Final = (1.0, 2.0)
Chores = Mapping[str, tuple[float, Callable[[], None]]]


class Bus:
    """A daemon on *url*, an empty database, and *rabbitmq*; ``step`` is a moment of its life."""

    def __init__(self, plan: Plan, folder: Path, rabbitmq: RabbitMQ, url: str) -> None:
        self._rabbitmq, self._folder = rabbitmq, folder
        self._ending = contextlib.ExitStack()
        fleet = FleetPlan(plan.hosts, mix="numa", load=0.2, instances_per_host=2, seed=plan.seed)
        install.into_own(url, fleet, datetime.datetime.now(datetime.UTC))
        self.database = Database(url)
        self._ending.callback(self.database.dispose)
        self._port = rabbitmq.reserve_port()
        self._deployment = self._deployed(url)
        self._ending.callback(self._deployment.close)
        watch = [sys.executable, "-m", "tests.soak.look", folder, plan.sample_seconds]
        self._deployment.run_by = [str(each) for each in watch]
        # A folder of its own for what is passing, where nobody else tidies up.
        passing = folder / "passing"
        passing.mkdir(exist_ok=True)
        own = {"PYTHONPATH": str(servers.ROOT), "TMPDIR": str(passing)}
        self.daemon = self._deployment.start_scheduler(extra_environment=own)
        self.daemon.wait_ready(servers.START_SECONDS)
        self._rng = random.Random(plan.seed)
        self._estate = Estate(self.database, fleet, plan.servers, self._rng, time.time)
        self.counts = self._estate.counts
        self._demands = Demands(
            fleet, self._rng, lambda: self._estate.hosts, lambda: self._estate.servers
        )
        self._callers = [self._a_caller() for _number in range(CALLERS)]
        self._latest: Demand | None = None
        self._next_at = time.monotonic()
        self._broker: look.Sample = {}
        self._looking: threading.Thread | None = None
        self._due_at = dict.fromkeys(self._chores, time.monotonic())

    def _deployed(self, url: str) -> Deployment:
        groups = {group: dict(values) for group, values in settings().items()}
        groups["DEFAULT"] |= {"host": HOST, "debug": False}
        groups["metrics_endpoint"] = {"enabled": True, "port": self._port}
        filters = groups["filter_scheduler"]["enabled_filters"]
        groups["filter_scheduler"]["enabled_filters"] = ",".join(configuration.chain(filters))
        return Deployment(self._folder, self._rabbitmq.url(), url, settings=groups)

    def _a_caller(self) -> Caller:
        return Caller(self._rabbitmq.url(), self._answered)

    # --- a moment ------------------------------------------------------------------------

    @property
    def _chores(self) -> Chores:
        return {
            "estate": (STEP_SECONDS, self._estate.step),
            "reload": (RELOAD_SECONDS, self._reload),
            "ask": (ASK_SECONDS, self._ask_an_operators_questions),
            "die": (DIE_SECONDS, self._let_a_caller_die),
            "cast": (CAST_SECONDS, self._cast),
            "broker": (BROKER_SECONDS, self._begin_to_look_at_the_broker),
        }

    def step(self) -> None:
        """Ask at a steady rate, take answers, and do what is due."""
        if self.daemon.exit_code is not None:
            raise RuntimeError(f"the daemon ended with {self.daemon.exit_code}")
        for each in self._callers:
            if each.waiting < UNDER_WAY and time.monotonic() >= self._next_at:
                self._next_at = max(self._next_at, time.monotonic() - 1.0) + 1 / PER_SECOND
                self._latest = self._demands.next()
                each.ask(self._latest)
            each.receive()
        for name, (every, action) in self._chores.items():
            if time.monotonic() >= self._due_at[name]:
                action()
                self._due_at[name] = time.monotonic() + every

    def _answered(self, answer: Answer) -> None:
        demand = answer.demand
        if demand is None:
            self.counts["answers to operators"] += 1
            return
        self.counts["decisions"] += 1 if answer.failure else len(demand.uuids)
        if answer.failure in (None, "NoValidHost", "InvalidRequest"):
            self.counts["requests refused" if answer.failure else "requests answered"] += 1
        else:
            self.counts[f"requests failed with {answer.failure}"] += 1
        if not answer.failure:
            self._estate.arrive(demand.spec, demand.uuids, answer.hosts)

    def _reload(self) -> None:
        self.counts["reloads"] += 1
        multiplier = MULTIPLIERS[self.counts["reloads"] % len(MULTIPLIERS)]
        self._deployment.configure({"filter_scheduler": {"ram_weight_multiplier": multiplier}})
        self.daemon.signal(signal.SIGHUP)

    def _ask_an_operators_questions(self) -> None:
        if self._latest is None:
            return
        name = self._latest.request_id
        for method, arguments in (
            ("explain", {"name": name}),
            ("what_if", {"remembered": name, "disable": ["RamFilter"]}),
            ("state_summary", {}),
        ):
            self._callers[0].ask_worker(worker_name(HOST, 1), method, arguments)
        for page in ("metrics", "status", "readyz"):
            with contextlib.suppress(urllib.error.HTTPError), self._opened(page) as answer:
                answer.read()
        self.counts["pages read"] += 3

    def _opened(self, page: str) -> Any:
        return urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{page}", timeout=30)

    def _let_a_caller_die(self) -> None:
        """One goes without a word while it waits for answers; another comes in its place."""
        number = self._rng.randrange(len(self._callers))
        self._callers[number].die()
        self._callers[number] = self._a_caller()
        self.counts["callers that died"] += 1

    def _cast(self) -> None:
        """What compute hosts of Nova's tell every scheduler, and a message that nobody can read."""
        host = self._rng.choice(self._estate.hosts)
        caller = self._callers[0]
        there = self._estate.instances_on(host)
        told = there.obj_to_primitive()
        uuids = [each.uuid for each in there.objects]
        caller.cast("update_instance_info", {"host_name": host, "instance_info": told})
        caller.cast("sync_instance_info", {"host_name": host, "instance_uuids": uuids})
        said = {"service_name": "compute", "host": host, "capabilities": {"at": time.time()}}
        caller.cast("update_service_capabilities", said, version="2.4")
        caller.publish("no JSON", routing_key="scheduler")
        self.counts["casts"] += 4

    # --- looks ---------------------------------------------------------------------------

    def _begin_to_look_at_the_broker(self) -> None:
        """In a thread, as everything goes on meanwhile; a look that takes too long is left out."""
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self._look_at_the_broker, daemon=True)
            self._looking.start()

    def _look_at_the_broker(self) -> None:
        try:
            self._broker = look.broker(self._rabbitmq)
        except subprocess.TimeoutExpired:
            self.counts["looks at the broker that took too long"] += 1

    def look(self) -> look.Sample:
        """Tables, queues and series; the processes look at themselves."""
        with self._opened("metrics") as answer:
            lines = answer.read().decode().splitlines()
        series = sum(1 for line in lines if line and not line.startswith("#"))
        return {
            **look.rows(self.database, self.counts["hosts replaced"]),
            **self._broker,
            "series": series,
        }

    def processes(self) -> dict[int, look.Kept]:
        """What the daemon's processes have seen of themselves, by process."""
        pids = [int(path.stem) for path in self._folder.glob("[0-9]*.json")]
        living = [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
        return {pid: look.Kept(self._folder / f"{pid}.json") for pid in sorted(living)}

    def tracebacks(self) -> int:
        """How many there are in the daemon's log, but for messages that nobody can read."""
        lines = (line for line in self.daemon.log.splitlines() if "impl_rabbit" not in line)
        return sum("Traceback (most recent" in line for line in lines)

    def close(self) -> None:
        for each in self._callers:
            each.close()
        if self._looking is not None:
            self._looking.join()
        self._ending.close()


def run(
    plan: Plan, folder: Path, rabbitmq: RabbitMQ, url: str
) -> tuple[dict[str, Any], list[tuple[str, look.Kept]]]:
    """Work until it is over; what was done, and the looks at tables and processes."""
    kept = look.Kept(folder / "bus.jsonl")
    bus = Bus(plan, folder, rabbitmq, url)
    with contextlib.closing(bus):
        began = due_at = time.monotonic()
        while not plan.is_over(time.monotonic() - began, bus.counts["decisions"]):
            bus.step()
            if time.monotonic() >= due_at:
                due_at = time.monotonic() + plan.sample_seconds
                seconds = time.monotonic() - began
                kept.add(seconds, bus.look(), decisions=bus.counts["decisions"])
        found = [("tables and broker", kept)]
        found += [(f"daemon, process {pid}", each) for pid, each in bus.processes().items()]
        done: Counter[str] = bus.counts
        facts = {"tracebacks": bus.tracebacks(), "seconds": round(time.monotonic() - began)}
        return json.loads(json.dumps({**done, **facts})), found
