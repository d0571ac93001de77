"""What a shadow makes of the outcome of a request."""

import contextlib
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from oslo_utils import timeutils

from scheduler import errors
from scheduler.daemon.service import build_manager
from scheduler.daemon.shadow import DRIVER, configure
from scheduler.db.databases import Databases
from scheduler.db.tables import compute_nodes, instances
from scheduler.manager import SchedulerManager
from scheduler.rpc import transport
from scheduler.rpc.context import RequestContext
from scheduler.shadow import MOST_STATES, MOST_WAITING, Outcomes
from tests.builders import a_conf
from tests.waiting import wait_until
from tests.world import fleet

HOSTS = ("h1", "h2", "h3", "h4")
STEP_MB = 4096


def now():
    return timeutils.utcnow().replace(microsecond=0)


@dataclass
class World:
    """A shadow of a scheduler; each host has STEP_MB more memory free than the one before."""

    manager: SchedulerManager
    databases: Databases

    @property
    def database(self):
        return self.databases.main

    @property
    def driver(self):
        return self.manager.driver

    def decide(self, count=1, age_seconds=0, **fields):
        """Decide one request; its instances and their hosts, none if it was refused."""
        context = RequestContext(arrived_at=time.monotonic() - age_seconds)
        names = [str(uuid.uuid4()) for _ in range(count)]
        with contextlib.suppress(errors.NoValidHost):
            spec = fleet.a_spec(names[0], num_instances=count, **fields)
            chosen = self.manager.select_destinations(context, spec_obj=spec, instance_uuids=names)
            return names, [each["host"] for each in chosen]
        return names, []

    def free(self, host, free_mb):
        update = sa.update(compute_nodes).where(compute_nodes.c.host == host)
        with self.database.write() as connection:
            connection.execute(update.values(free_ram_mb=free_mb, updated_at=now()))

    def place(self, names, hosts):
        """Let the other scheduler give instances to *hosts*, or none; the difference, if any."""
        with self.database.write() as connection:
            for name, host in zip(names, hosts or [None] * len(names), strict=True):
                state = "building" if host else "error"
                values = {"uuid": name, "host": host, "node": host, "vm_state": state, "deleted": 0}
                values |= {"memory_mb": 1, "created_at": now(), "updated_at": now()}
                connection.execute(instances.insert().values(**values))
        known = sum(self.driver.shadow_report()["results"].values())
        wait_until(lambda: sum(self.look()["results"].values()) > known, 60, "the outcome")
        differences = self.driver.shadow_report()["differences"]
        found = {each["instances"]: each["result"] for each in differences}
        return found.get(", ".join(names))

    def look(self):
        self.driver.look(Outcomes(self.databases, self.driver).read)
        return self.driver.shadow_report()


@pytest.fixture
def world(tmp_path):
    with a_world(tmp_path) as made:
        yield made


@contextlib.contextmanager
def a_world(folder, step_mb=STEP_MB, hosts=HOSTS, **filter_scheduler):
    url = f"sqlite:///{folder}/nova.sqlite"
    fleet.install(url, hosts)
    conf = a_conf(
        **{"enabled_filters": ["RamFilter"], **filter_scheduler},
        database__connection=url,
        DEFAULT__service_down_time=3600,
        scheduler__state_fresh_seconds=0,
        scheduler__driver=DRIVER,
    )
    databases = Databases.from_conf(conf)
    world = World(build_manager(conf, databases), databases)
    try:
        for number, host in enumerate(hosts, 1):
            world.free(host, 8 * STEP_MB + number * step_mb)
        world.manager.driver.host_manager.refresh()
        yield world
    finally:
        databases.dispose()


def to(*hosts):
    """An outcome: so and so, whatever was decided."""
    return lambda _world, _decided: hosts


def to_another(_world, decided):
    return ["h3" if decided == ["h4"] else "h4"]


def after_a_report(world, _decided):
    world.free("h4", STEP_MB)
    return ["h3"]


def refused_for_lack(world, _decided):
    for host in HOSTS:
        world.free(host, -(10**6))
    return []


OUTCOMES = {
    "the same host": ({}, to("h4"), None),
    "equally good": ({"step_mb": 0}, to_another, "tie"),
    "in the subset": ({"host_subset_size": 2}, to_another, "random_subset"),
    "outside the subset": ({"host_subset_size": 2}, to("h1"), "other"),
    "the next best": ({}, to("h3"), "other"),
    "the best after a report": ({}, after_a_report, "state_moved"),
    "refused after reports": ({}, refused_for_lack, "state_moved"),
    "refused there alone": ({}, to(), "other"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_difference_has_a_reason(name, tmp_path):
    options, outcome, expected = OUTCOMES[name]
    with a_world(tmp_path, **options) as world:
        names, decided = world.decide()
        assert (len(decided), [*world.driver.host_manager.reservations]) == (1, [])
        assert world.place(names, outcome(world, decided)) == expected
        assert sum(world.driver.shadow_report()["results"].values()) == 1


#: Age of the request in seconds, decisions on others, what a host reports before and after.
READ = {
    "before a report": (0, 0, [64, 1], []),
    "long before a copy was decided on": (3, 0, [64, 1, 2], []),
    "for a moment": (0, 0, [], [64, 1]),
    "for a moment, among decisions on others": (0, 2 * MOST_STATES, [], [64, 1]),
    "of many": (0, 0, [], [64, *range(1, 2 * MOST_STATES)]),
}


@pytest.mark.parametrize("name", READ)
def test_the_other_scheduler_may_have_read_what_was_reported(name, world):
    seconds, others, before, after = READ[name]
    for steps in before:
        world.free("h1", steps * STEP_MB)
        world.look()
    names, decided = world.decide(age_seconds=seconds)
    for _ in range(others):
        world.place(*world.decide())
    for steps in after:
        world.free("h1", steps * STEP_MB)
        world.look()
    assert (decided, world.place(names, ["h1"])) == (["h4"], "state_moved")


@pytest.mark.parametrize(
    ("outcome", "reports", "expected"),
    [
        (("h4", "h3"), (), None),
        (("h4", "h2"), (), "other"),
        (("h3", "h4"), (), "other"),
        (("h4", "h1"), ("h1",), "state_moved"),
    ],
)
def test_the_first_server_that_differs_counts_beside_those_before_it(
    outcome, reports, expected, world
):
    names, decided = world.decide(count=2)
    for host in reports:
        world.free(host, 64 * STEP_MB)
    assert (decided, world.place(names, outcome)) == (["h4", "h3"], expected)


def test_a_request_refused_by_both_agrees(world):
    flavor = fleet.a_spec("").flavor.copy()
    flavor.memory_mb = 10**6
    names, decided = world.decide(flavor=flavor)
    assert (decided, world.place(names, [])) == ([], None)
    assert world.driver.shadow_report()["results"]["agreed"] == 1


def test_only_so_many_requests_wait_and_only_so_long(world, monkeypatch):
    for _ in range(MOST_WAITING + 2):
        world.decide()
    report = world.look()
    assert (report["waiting"], report["results"]["outcome_unknown"]) == (MOST_WAITING, 2)
    monkeypatch.setattr("scheduler.shadow.OUTCOME_SECONDS", 0.0)
    world.look()
    assert world.driver.shadow_report()["results"]["outcome_unknown"] == MOST_WAITING + 2


def test_a_look_asks_for_so_many_outcomes_only(world):
    asked = []
    for _ in range(2 * MOST_WAITING + 3):
        world.decide()
    world.driver.look(lambda request, _homes: asked.append(request.names))
    report = world.driver.shadow_report()
    assert (len(asked), report["waiting"]) == (2 * MOST_WAITING, MOST_WAITING)
    assert report["results"]["outcome_unknown"] == MOST_WAITING + 3


def test_servers_without_a_name_have_no_outcome(world, monkeypatch):
    monkeypatch.setattr("scheduler.shadow.OUTCOME_SECONDS", 0.0)
    spec = fleet.a_spec(str(uuid.uuid4()), num_instances=2)
    world.manager.select_destinations(None, spec_obj=spec)
    world.look()
    assert world.driver.shadow_report()["results"]["outcome_unknown"] == 1


def test_nothing_of_it_is_loaded_without_the_option():
    program = (
        "import sys, scheduler.cmd.scheduler, scheduler.daemon.service;"
        "sys.exit(any('shadow' in name for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_shadow_needs_the_bus_and_the_filter_driver():
    conf = a_conf()
    with pytest.raises(errors.ConfigurationError, match="--shadow needs the message bus"):
        configure(conf)
    conf.set_override("transport_url", "rabbit://somewhere")
    conf.set_override("driver", "chance_scheduler", group="scheduler")
    with pytest.raises(errors.ConfigurationError, match="no other driver"):
        configure(conf)


def test_a_shadow_writes_nothing_and_has_a_name_of_its_own():
    conf = a_conf(DEFAULT__host="here")
    assert transport.is_in_process(conf)
    conf.set_override("transport_url", "rabbit://somewhere")
    conf.set_override("claims", "database", group="scheduler")
    configure(conf)
    assert (conf.host, conf.database.read_only) == ("here-shadow", True)
    assert (conf.scheduler.claims, conf.scheduler.workers) == ("none", 1)
