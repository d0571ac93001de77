"""What answers in a daemon, in this process, with a clock that is moved on between requests."""

import contextlib
import datetime
import random
import time
from collections import Counter
from typing import Any, Final
from unittest import mock

from oslo_config import cfg
from oslo_utils import timeutils

from benchmarks import configuration, install
from benchmarks.fleet import FleetPlan
from scheduler import errors
from scheduler.daemon.service import build_manager
from scheduler.db.databases import Databases
from scheduler.explain.store import Store
from scheduler.idempotency import ReplyCache
from scheduler.introspection import state, what_if
from scheduler.introspection.state import Subject
from scheduler.rpc.context import RequestContext, get_admin_context
from tests.soak import look
from tests.soak.demands import LARGE_COUNTS, Demand, Demands
from tests.soak.estate import Estate
from tests.soak.plan import Plan, settings
from tests.soak.verdict import DECISIONS, Scale
from tests.world.connection import chosen_host

#: Simulated seconds between two requests, on average.
PAUSE_SECONDS: Final = 10.0
REQUESTS_PER_STEP: Final = 4
#: After so many requests each: the same request again, explain, what-if, a reload, periodic tasks.
REPEAT_EVERY, EXPLAIN_EVERY, WHAT_IF_EVERY, RELOAD_EVERY, PERIODIC_EVERY = 50, 100, 500, 1000, 20
MULTIPLIERS: Final = (1.0, 2.0)
#: Before each look nobody asks for so long, in steps: what is kept for minutes is gone then.
LULL_STEPS, LULL_STEP_SECONDS = 8, 150.0
#: After so many decisions for each of the servers that may live at a time all that is bounded by
#: them has been full for long.
DECISIONS_PER_SERVER: Final = 8


class Clock:
    """Seconds since the epoch, moved on by hand."""

    def __init__(self) -> None:
        self._now = self.begin = time.time()

    def __call__(self) -> float:
        return self._now

    def move(self, seconds: float) -> None:
        self._now += seconds

    def utcnow(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._now, datetime.UTC).replace(tzinfo=None)


class Engine:
    """A manager on the database at *url*, which is empty; ``step`` lets a little happen."""

    def __init__(self, plan: Plan, url: str) -> None:
        self.clock = Clock()
        fleet = FleetPlan(plan.hosts, mix="numa", load=0.2, instances_per_host=2, seed=plan.seed)
        install.into_own(url, fleet, datetime.datetime.fromtimestamp(self.clock(), datetime.UTC))
        self._ending = contextlib.ExitStack()
        moved = mock.patch.object(timeutils, "utcnow", self.clock.utcnow)
        self._ending.enter_context(moved)
        self._url = url
        self._conf = self._configured(0)
        self.databases = Databases.from_conf(self._conf)
        self._ending.callback(self.databases.dispose)
        self.manager = build_manager(self._conf, self.databases)
        self._take_clock()
        self._begin_store()
        rng = random.Random(plan.seed)
        self._rng = rng
        database = self.databases.main
        self._estate = Estate(database, fleet, plan.servers, rng, self.clock)
        self._demands = Demands(
            fleet,
            rng,
            lambda: self._estate.hosts,
            lambda: self._estate.servers,
            [min(count, plan.largest) for count in LARGE_COUNTS],
        )
        self._subject = Subject(self._conf, self.manager, 1, 1)
        self.requests = 0
        #: A leak of so many objects per request, planted to see that it is found.
        self._leak, self._leaked = plan.leak, list[Any]()
        self.counts: Counter[str] = self._estate.counts
        self.manager.driver.host_manager.refresh()
        self.manager.driver.claims.prepare()

    def _configured(self, reloads: int) -> cfg.ConfigOpts:
        groups = {group: dict(values) for group, values in settings().items()}
        groups["database"] = {"connection": self._url}
        multiplier = MULTIPLIERS[reloads % len(MULTIPLIERS)]
        groups["filter_scheduler"]["ram_weight_multiplier"] = multiplier
        filters = groups["filter_scheduler"].pop("enabled_filters")
        return configuration.in_process(
            {"driver": "filter_scheduler", "filters": filters, "options": groups}
        )

    def _take_clock(self) -> None:
        driver, options = self.manager.driver, self._conf.scheduler
        driver.host_manager.clock = driver.host_manager.reservations.clock = self.clock
        driver.pause = self.clock.move
        kept = options.answers_kept_seconds, options.answers_kept_servers
        self.manager.replies = ReplyCache(*kept, clock=self.clock)

    def _begin_store(self) -> None:
        store = Store.from_conf(self._conf, self.databases.main)
        if store is None:
            raise RuntimeError("records are to be kept")
        self._ending.callback(store.close)
        self.manager.recorder.listeners.append(store.put)

    def step(self) -> None:
        """One request, and what else is due."""
        self.requests += 1
        self.clock.move(self._rng.expovariate(1 / PAUSE_SECONDS))
        demand = self._demands.next()
        self._ask(demand)
        leaks = int(self.requests * self._leak) - len(self._leaked)
        self._leaked += [[] for _number in range(leaks)]
        due = {
            REPEAT_EVERY: lambda: self._ask(demand, is_new=False),
            EXPLAIN_EVERY: lambda: state.explain(self._subject, demand.request_id),
            WHAT_IF_EVERY: lambda: self._what_if(demand),
            PERIODIC_EVERY: self._periodic,
            REQUESTS_PER_STEP: self._estate.step,
            RELOAD_EVERY: self._reload,
        }
        for every, action in due.items():
            if self.requests % every == 0:
                action()

    def _ask(self, demand: Demand, *, is_new: bool = True) -> None:
        context = RequestContext("user", "project", request_id=demand.request_id, overwrite=False)
        try:
            answer = self.manager.select_destinations(context, **demand.arguments)
        except (errors.NoValidHost, errors.InvalidRequest):
            self.counts["requests refused"] += 1
            self.counts["decisions"] += 1
            return
        self.counts["requests answered" if is_new else "requests answered again"] += 1
        if is_new:
            self.counts["decisions"] += len(demand.uuids)
            self._estate.arrive(demand.spec, demand.uuids, [chosen_host(each) for each in answer])

    def _what_if(self, demand: Demand) -> None:
        try:
            what_if.what_if(self._subject, remembered=demand.request_id, disable=["RamFilter"])
        except errors.InvalidRequest:  # it is not remembered: the memory is small
            self.counts["what-ifs refused"] += 1
        self.counts["what-ifs"] += 1

    def _periodic(self) -> None:
        self.manager.driver.run_periodic_tasks(get_admin_context())
        host = self._rng.choice(self._estate.hosts)
        there = self._estate.instances_on(host)
        self.manager.update_instance_info(None, host, there)
        self.manager.sync_instance_info(None, host, [each.uuid for each in there.objects])

    def _reload(self) -> None:
        self.counts["reloads"] += 1
        self.manager.reconfigured(self._configured(self.counts["reloads"]))()

    def lull(self) -> None:
        """Minutes in which nobody asks: claims are over, and forgotten."""
        for _number in range(LULL_STEPS):
            self.clock.move(LULL_STEP_SECONDS)
            self._estate.step()
            self.manager.driver.run_periodic_tasks(get_admin_context())

    def look(self) -> tuple[look.Sample, Counter[str]]:
        sample, types = look.own()
        return {**sample, **look.rows(self.databases.main, self.counts["hosts replaced"])}, types

    @property
    def simulated_seconds(self) -> float:
        return self.clock() - self.clock.begin

    def close(self) -> None:
        self._ending.close()


def run(plan: Plan, url: str, kept: look.Kept) -> dict[str, Any]:
    """Work until it is over; what was done.

    It is judged by the number of decisions, so that a machine that is slow, or busy now and then,
    sees the same as any other.
    """
    engine = Engine(plan, url)
    with contextlib.closing(engine):
        began = due_at = time.monotonic()
        while not plan.is_over(time.monotonic() - began, engine.counts["decisions"]):
            engine.step()
            if plan.sample_requests:
                is_due = engine.requests % plan.sample_requests == 0
            else:
                is_due = time.monotonic() >= due_at
            if is_due:
                engine.lull()
                kept.add(engine.simulated_seconds, *engine.look(), engine.counts["decisions"])
                due_at = time.monotonic() + plan.sample_seconds
        return {
            **engine.counts,
            "requests": engine.requests,
            "simulated hours": round(engine.simulated_seconds / 3600, 2),
            "seconds": round(time.monotonic() - began),
        }


def scale(plan: Plan) -> Scale:
    """How it is judged: by decisions, and by each type of object."""
    # The heap of a process grows into its place for a few thousand requests.
    allowed = {"rss_mib": (24.0, 0.08), "gc_objects": (24000.0, 0.05)}
    least = DECISIONS_PER_SERVER * plan.servers
    return Scale(DECISIONS, least, allowed=allowed, allowance=plan.allowance, by_type=True)
