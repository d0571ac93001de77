"""Decisions in this process: by the driver on its host table, and by plain Python.

They are timed by the processor time of this process.
"""

import datetime
import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import configuration, fleet, requests, row_by_row
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.workload import Settings
from scheduler import drivers, errors, objects
from scheduler.drivers.loading import host_manager_class
from scheduler.replay.row_fleet import RowFleet
from scheduler.rpc.context import get_admin_context

#: Requests are made before the clock starts; this many of them, then the same again.
POOL = 400
#: Of those of which no two are alike.
LARGE_POOL = 4000
WARM_UP_DECISIONS = 5
ANSWERS = 3


class Requests:
    """The requests of a subject: ``requests`` names their kind, ``instances`` how many each."""

    def __init__(self, settings: Settings, plan: fleet.FleetPlan) -> None:
        self.instances = settings.get("instances", 1)
        name = settings.get("requests", "plain")
        self._never_alike = name in requests.NEVER_ALIKE
        self._kind, self._plan = requests.KINDS[name], plan
        self._begin = 0
        self._fill(LARGE_POOL if self._never_alike else POOL)

    def _fill(self, count: int) -> None:
        self._pool = [
            self._kind(number, self._plan) for number in range(self._begin, self._begin + count)
        ]
        for spec in self._pool:
            spec.num_instances = self.instances
        self._numbers = itertools.count()

    def restart(self) -> None:
        """Begin again with the same uuids; those of the last round are given back by then."""
        if self._never_alike:
            self._begin += LARGE_POOL
            self._fill(LARGE_POOL)
        self._numbers = itertools.count()

    def __call__(self) -> tuple[objects.RequestSpec, list[str]]:
        """The next request, and the uuids of its servers, which nobody had before."""
        number = next(self._numbers)
        spec, first = self._pool[number % len(self._pool)], POOL + number
        uuids = [requests.request_uuid(first)]
        if self.instances > 1:
            base = (first + 1) << 20
            uuids = [requests.request_uuid(base + place) for place in range(self.instances)]
        return spec, uuids


class EngineDecisions:
    """The configured driver, from request object to Selections, without a bus.

    Further settings: ``alternates``, ``expect_failure``; ``cells``, of which the first is disabled.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        del session
        plan = fleet.FleetPlan(**settings["fleet"])
        conf = configuration.in_process(settings)
        self._cells = _cells(plan, settings.get("cells", 0))
        reader = RowFleet({**fleet.rows(plan), "cells": self._cells})
        self._manager = host_manager_class(conf)(conf, reader, fleet.NOW.timestamp)
        self.driver = drivers.load(conf, self._manager)
        self.requests = Requests(settings, plan)
        self._alternates = bool(settings.get("alternates", False))
        self._expect_failure = bool(settings.get("expect_failure", False))
        self._context = get_admin_context()

    def warm_up(self) -> None:
        """Read the fleet and decide a few times."""
        self._manager.refresh()
        for cell in self._cells[:1]:
            self._manager.table.cells[cell["uuid"]] = True
        for _number in range(WARM_UP_DECISIONS):
            self._decide()
        self._give_back()

    def round(self, seconds: float) -> Sample:
        """Decide again and again; then give back what was consumed."""
        latencies, elapsed, answers = timed(self._decide, seconds)
        self._give_back()
        return Sample(latencies, elapsed, len(latencies) * self.requests.instances, answers)

    def _decide(self) -> Any:
        spec, uuids = self.requests()
        try:
            chosen = self.driver.select_destinations(
                self._context, spec, uuids, return_alternates=self._alternates
            )
        except errors.NoValidHost:
            if not self._expect_failure:
                raise
            return None
        return chosen[0][0].service_host

    def _give_back(self) -> None:
        reservations = self._manager.reservations
        for pick in reversed(list(reservations)):
            reservations.release(pick)
        self.requests.restart()

    def pids(self) -> Sequence[int]:
        """None but this process."""
        return ()

    def close(self) -> None:
        """Nothing is open."""


class RowByRowDecisions:
    """The same requests, decided by ``row_by_row``."""

    def __init__(self, settings: Settings, session: Session) -> None:
        del session
        plan = fleet.FleetPlan(**settings["fleet"])
        self._hosts = row_by_row.hosts_of(fleet.rows(plan))
        self.requests = Requests(settings, plan)
        self._alive_since = (fleet.NOW - datetime.timedelta(seconds=60)).isoformat()
        self._taken: list[tuple[row_by_row.Host, objects.RequestSpec]] = []

    def warm_up(self) -> None:
        """Once is enough: nothing is remembered."""
        self._decide()
        self._give_back()

    def round(self, seconds: float) -> Sample:
        """Decide again and again; then give back what was consumed."""
        latencies, elapsed, answers = timed(self._decide, seconds)
        self._give_back()
        return Sample(latencies, elapsed, len(latencies), answers)

    def _decide(self) -> str | None:
        spec, _uuids = self.requests()
        host = row_by_row.decide(self._hosts, spec, self._alive_since)
        if host is None:
            return None
        self._taken.append((host, spec))
        return host.name

    def _give_back(self) -> None:
        for host, spec in self._taken:
            row_by_row.consume(host, spec, -1)
        self._taken.clear()
        self.requests.restart()

    def pids(self) -> Sequence[int]:
        """None but this process."""
        return ()

    def close(self) -> None:
        """Nothing is open."""


def _cells(plan: fleet.FleetPlan, count: int) -> list[dict[str, Any]]:
    """So many cells, with one host in each after the other."""
    return [
        {"uuid": str(uuid.UUID(int=(10 << 64) + number)), "hosts": plan.names[number::count]}
        for number in range(count)
    ]


def timed(work: Callable[[], Any], seconds: float) -> tuple[list[float], float, list[Any]]:
    """Do *work* for about *seconds*; latencies, processor time in all, and the first answers."""
    latencies: list[float] = []
    answers: list[Any] = []
    began = before = time.process_time()
    while not latencies or before - began < seconds or len(answers) < ANSWERS:
        answer = work()
        after = time.process_time()
        latencies.append(after - before)
        if len(answers) < ANSWERS:
            answers.append(answer)
        before = after
    return latencies, before - began, answers
