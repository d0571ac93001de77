"""The conductor on a real SQLite database, with everything that leaves the process recorded."""

import dataclasses
import types
from collections import defaultdict
from typing import Any

import pytest

from conductor_stub import server_rows
from conductor_stub.alternates import Claims
from conductor_stub.building import Builder
from conductor_stub.failures import Failures
from conductor_stub.manager import ComputeTaskManager
from conductor_stub.planning import Planner
from scheduler.db import instances
from scheduler.db.database import Database
from tests.builders import a_conf
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.driving import wanted_of


class Scheduler:
    """Answers with *answer*, or raises it; keeps the requests."""

    def __init__(self):
        self.answer = []
        self.asked = []

    def select_destinations(self, context, spec, uuids, return_objects, return_alternates):
        self.asked.append(spec)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Compute:
    """Keeps the casts, by method; speaks Newton when told so."""

    def __init__(self):
        self.sent = defaultdict(list)
        self.casts = self.sent["build_and_run_instance"]
        self.speaks_newton = False
        self.unreachable = set()

    def takes_spec_objects(self):
        return not self.speaks_newton

    def cast(self, context, host, method, **arguments):
        if host in self.unreachable:
            raise ConnectionError(f"no way to {host}")
        self.sent[method].append((host, types.SimpleNamespace(**arguments)))


class Told:
    """Keeps the unversioned notifications; there are no others."""

    enabled = True
    versioned = types.SimpleNamespace(enabled=False)

    def __init__(self):
        self.errors, self.legacy = [], self

    def error(self, context, task, payload):
        self.errors.append(types.SimpleNamespace(task=task, **payload))


class Booking(Claims):
    """Claims the hosts that *bookable* names, all that need no claim if it is None."""

    def __init__(self):
        self.bookable = None
        self.released = []

    def claim(self, context, spec, instance_uuid, selection):
        if self.bookable is None:
            return super().claim(context, spec, instance_uuid, selection)
        assert context.is_admin
        return selection.service_host in self.bookable

    def release(self, context, instance_uuid):
        self.released.append((context.is_admin, instance_uuid))


@dataclasses.dataclass
class Conductor:
    """The manager under test and what stands around it."""

    database: Database
    scheduler: Scheduler = dataclasses.field(default_factory=Scheduler)
    compute: Compute = dataclasses.field(default_factory=Compute)
    told: Told = dataclasses.field(default_factory=Told)
    claims: Booking = dataclasses.field(default_factory=Booking)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def manager(self):
        conf = a_conf(**self.options)
        failures = Failures(self.database, self.told, host="sched1")
        planner = Planner(conf, self.database, self.scheduler)
        parts = (planner, self.compute, failures, self.claims, conf.default_availability_zone)
        return ComputeTaskManager(Builder(self.database, *parts))

    def asked_for(self, count=1, mapped=True, **changes):
        """Instances as the API leaves them."""
        created = [builders.instance(number, **changes) for number in range(count)]
        with self.database.write() as conn:
            for each in created:
                server_rows.create_instance(conn, each)
                if mapped:
                    server_rows.create_build_request(conn, each)
        return created

    def wanted(self, count=1, **changes):
        """Servers as the API leaves them since Ocata."""
        created = [builders.instance(number, **changes) for number in range(count)]
        with self.database.write() as conn:
            for each in created:
                server_rows.create_build_request(conn, each)
        return [wanted_of(each) for each in created]

    def row(self, instance):
        with self.database.read() as conn:
            return instances.get(conn, instance.uuid)


@pytest.fixture
def conductor(database):
    return Conductor(database)
