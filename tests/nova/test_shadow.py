"""A shadow beside Nova's own scheduler: each difference has a name.

There are SHADOW_REQUESTS; ``make test-shadow`` writes ``docs/evidence/shadow.md`` of a thousand.
"""

import json
import os
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scheduler.concurrency import THREADING as THREADS
from scheduler.shadow import Result
from tests.nova import controlled
from tests.nova.cloud.programs import Service
from tests.nova.databases import merged
from tests.nova.deployed import a_uuid
from tests.nova.driver import NovaDriver
from tests.servers.fixtures import made
from tests.servers.placement import Placement
from tests.servers.venvs import CHECKOUT, PLACEMENT
from tests.waiting import wait_until
from tests.world.deployment import Deployment
from tests.world.results import publish, table

REQUESTS = int(os.environ.get("SHADOW_REQUESTS", "40"))
CALLERS = 2
#: So many builds of each caller are on their way while it asks for the next server.
ON_THEIR_WAY = 2
#: A server is active so long after its host has begun to build it.
BUILD_SECONDS = 1.5
#: Times the size of the smallest host; those of equal size are equally good at first.
SIZES = (4, 4, 4, 6, 6, 8, 8, 8, 12, 16)
#: Hosts without the room for any server: an outcome that names one must be "other".
FULL_HOSTS = 2
FLAVORS = (
    {"memory_mb": 512, "vcpus": 1, "root_gb": 1},
    {"memory_mb": 2048, "vcpus": 1, "root_gb": 5},
    {"memory_mb": 4096, "vcpus": 2, "root_gb": 10},
)
RATIOS = {"VCPU": 4.0, "MEMORY_MB": 1.5, "DISK_GB": 1.0}


@dataclass
class Host:
    name: str
    memory_mb: int
    vcpus: int
    disk_gb: int
    servers: list[dict[str, int]] = field(default_factory=list)
    building: int = 0
    #: Held while it reports.
    lock: Any = field(default_factory=threading.Lock)

    def report(self):
        """Columns of its node, as nova-compute fills them."""
        used = {name: sum(each[name] for each in self.servers) for name in FLAVORS[0]}
        free_gb = self.disk_gb - used["root_gb"]
        stats = {"num_instances": len(self.servers), "io_workload": self.building}
        return {
            "memory_mb": self.memory_mb,
            "memory_mb_used": used["memory_mb"],
            "free_ram_mb": self.memory_mb - used["memory_mb"],
            "vcpus": self.vcpus,
            "vcpus_used": used["vcpus"],
            "local_gb": self.disk_gb,
            "local_gb_used": used["root_gb"],
            "free_disk_gb": free_gb,
            "disk_available_least": free_gb,
            "running_vms": len(self.servers),
            "stats": {name: str(count) for name, count in {**stats, "failed_builds": 0}.items()},
        }

    def inventory(self):
        """All that Placement knows of it."""
        totals = {"VCPU": self.vcpus, "MEMORY_MB": self.memory_mb, "DISK_GB": self.disk_gb}
        return {
            name: {"total": total, "max_unit": total, "allocation_ratio": RATIOS[name]}
            for name, total in totals.items()
        }


class Caller:
    """Asks Nova's scheduler for servers, and builds them as their hosts would."""

    def __init__(self, nova, hosts):
        self._nova, self._hosts = nova, hosts
        self._claimed = deque()
        self._begun = deque()

    def ask(self, number):
        """Ask for one server; let hosts begin and finish what is due."""
        flavor, uuid = FLAVORS[number % len(FLAVORS)], a_uuid()
        ((chosen, *_others),) = self._nova.do(
            "calls.select", demand={"uuids": [uuid], "flavor": flavor}, alternates=True
        )
        self._claimed.append((uuid, chosen["host"], flavor))
        while len(self._claimed) > ON_THEIR_WAY:
            self._begin(*self._claimed.popleft())
        while self._begun and self._begun[0][0] < time.monotonic() - BUILD_SECONDS:
            self._finish(*self._begun.popleft())

    def _begin(self, uuid, host, flavor):
        self._report(host, 1, flavor)
        building = {"vm_state": "building", "task_state": "spawning"}
        self._nova.do("fleet.add_instance", host=host, uuid=uuid, flavor=flavor, **building)
        self._begun.append((time.monotonic(), uuid, host))

    def _finish(self, _began, uuid, host):
        self._report(host, -1)
        self._nova.do("fleet.start_instance", uuid=uuid)

    def _report(self, name, builds, *begun):
        host = self._hosts[name]
        with host.lock:
            host.building += builds
            host.servers += begun
            self._nova.do("fleet.change_host", name=name, columns=host.report())


@dataclass
class Cloud:
    """A Nova whose scheduler has a shadow."""

    deployment: Deployment
    callers: list[Caller]
    control: Path
    nova: Service

    def results(self):
        rows = self.deployment.manage("shadow", "report")
        return {row["result"]: row["requests"] for row in rows}


@pytest.fixture
def placement(mariadb):
    with Placement(made(PLACEMENT), mariadb.url(mariadb.create_database())) as server:
        yield server


def added_hosts(nova, placement):
    """The fleet, by name; Nova and Placement know it."""
    hosts = {}
    for number, size in enumerate((*SIZES, *[1] * FULL_HOSTS)):
        memory_mb = 65536 * size if number < len(SIZES) else 1
        host = Host(f"s{number}", memory_mb, size * 8, size * 1000)
        hosts[host.name] = host
        node = nova.do("fleet.add_host", cell="cell1", name=host.name, columns=host.report())
        placement.add_node(node, host.inventory(), ["OWNER_NOVA"])
    nova.do("fleet.discover")
    return hosts


@pytest.fixture
def cloud(nova_databases, rabbitmq, placement, tmp_path):
    bus = rabbitmq.url()
    shared = {
        "DEFAULT": {"transport_url": bus, "service_down_time": 3600},  # nothing sends heartbeats
        "placement": placement.settings,
    }
    nova = nova_databases.configured(tmp_path, shared, {"DEFAULT": {"debug": True}})
    with ExitStack() as stack:
        drivers = []
        for number in range(CALLERS):
            drivers.append(NovaDriver(nova.python, nova.config, tmp_path / f"nova-{number}.log"))
            stack.callback(drivers[-1].close)
        hosts = added_hosts(drivers[0], placement)
        program = nova.python.with_name("nova-scheduler")
        service = stack.enter_context(Service(rabbitmq, "nova", program, nova.config))
        # Nova's workers share the connection that was opened before they were forked, and their
        # first claims run into each other on it: Nova goes on to the next host.  This ends it.
        placement.stop()
        placement.start()
        apis = {"api_database": {"connection": nova.api_url}, "scheduler": {"claims": "placement"}}
        settings = merged(shared, apis)
        folder, control = tmp_path / "shadow", tmp_path / "control.json"
        deployment = Deployment(folder, bus, nova.cell_url, backend=THREADS, settings=settings)
        stack.callback(deployment.close)
        deployment.run_by = (sys.executable, "-m", controlled.__name__)
        found = {controlled.VARIABLE: str(control), "PYTHONPATH": str(CHECKOUT)}
        deployment.start_scheduler("--shadow", extra_environment=found).wait_ready()
        yield Cloud(deployment, [Caller(each, hosts) for each in drivers], control, service)


@pytest.mark.timeout(3000)
def test_every_difference_from_novas_scheduler_has_a_name(cloud):
    def ask(caller):
        for number in range(REQUESTS // CALLERS):
            caller.ask(number)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(ask, cloud.callers))
    wait_until(lambda: sum(cloud.results().values()) == REQUESTS, 60, lambda: str(cloud.results()))
    found, drawn = cloud.results(), json.loads(cloud.control.read_text())
    compared = {
        "that of Nova's scheduler": {name.replace(" ", "_"): n for name, n in found.items()}
    }
    compared |= {f"drawn from the hosts {kind}": counts for kind, counts in drawn.items()}
    rows = [[name, *(str(n.get(each, 0)) for each in Result)] for name, n in compared.items()]
    publish(table(["outcome", *(each.replace("_", " ") for each in Result)], rows))
    differing = cloud.deployment.manage("shadow", "report", "--differences")
    log = cloud.nova.log.splitlines()
    unnamed = [
        each for each in differing if each["result"] in (Result.OTHER, Result.OUTCOME_UNKNOWN)
    ]
    assert not unnamed, [
        (each, [line for line in log if each["request_id"] in line]) for each in unnamed
    ]
    assert found["agreed"] > REQUESTS // 2, differing
    assert drawn["not offered"] == {"other": REQUESTS}
    assert drawn["offered"]["other"] > REQUESTS // 2, drawn
