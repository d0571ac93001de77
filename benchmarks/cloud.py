"""A cloud to measure in: Nova's tables and scheduler, a real Placement, hosts that report."""

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import amqp
import sqlalchemy as sa

from benchmarks import configuration, install, servers
from benchmarks.fleet import FleetPlan, compute_nodes
from benchmarks.session import Session
from benchmarks.subjects import nova
from benchmarks.workload import Settings
from tests.nova.databases import THREADING, NovaDatabases, merged
from tests.servers.placement import Placement
from tests.servers.venvs import CHECKOUT, PLACEMENT
from tests.waiting import wait_until
from tests.world.connection import Connection
from tests.world.deployment import Deployment
from tests.world.process import environment

#: Traits of each host, of which one host in RARE_EVERY has another.
TRAITS: Final = 30
RARE, RARE_EVERY = "CUSTOM_RARE", 20
#: Devices of each host, in providers of their own, where there are any.
DEVICE, DEVICES = "CUSTOM_DEVICE", 8
#: Seconds between two reports of a host, and two heartbeats: Nova's defaults.
REPORT_SECONDS, BEAT_SECONDS = 60, 10
#: The service version of a nova-compute of today.
SERVICE_VERSION: Final = 74
START_SECONDS: Final = 300
#: Options of Placement for hosts with many devices.
WIDE: Final = """
[workarounds]
optimize_for_wide_provider_trees = true
[placement]
max_allocation_candidates = 25
allocation_candidates_generation_strategy = breadth-first
"""
_UNUSED: Final = {"parent_provider_id": None, "generation": 0}


@dataclass(frozen=True)
class Cloud:
    """The databases of Nova, and the URL of Placement's, with the fleet in all of them."""

    databases: NovaDatabases
    placement_url: str
    #: Allocations above this id were made while measuring.
    last_allocation: int


def cloud(session: Session, plan: FleetPlan, *, devices: bool) -> Cloud:
    """The one cloud of that fleet in this session, with or without *devices*."""

    def make(_ending: contextlib.ExitStack) -> Cloud:
        databases = session.once(f"live {plan}", lambda ending: _live(session, plan, ending))
        url = session.mariadb.url(session.mariadb.create_database())
        with Placement(PLACEMENT.ensure(), url) as filling:  # it makes the tables
            filling.call("PUT", f"/resource_classes/{DEVICE}")
            filling.call("PUT", f"/traits/{RARE}")
        return Cloud(databases, url, _fill(url, plan, devices=devices))

    return session.once(f"cloud {plan} {devices}", make)


def _live(session: Session, plan: FleetPlan, ending: contextlib.ExitStack) -> NovaDatabases:
    """Nova's databases, with hosts that report from now on."""
    databases = nova.database(session, plan, True, datetime.datetime.now(datetime.UTC))
    cell = sa.create_engine(databases.cell_url)
    with cell.begin() as connection:
        connection.exec_driver_sql(f"UPDATE services SET version = {SERVICE_VERSION}")
    cell.dispose()
    command = [sys.executable, "-m", "benchmarks.churn", databases.cell_url]
    words = [str(each) for each in (plan.hosts, REPORT_SECONDS, BEAT_SECONDS)]
    churn = subprocess.Popen([*command, *words], cwd=servers.ROOT, stdout=subprocess.DEVNULL)
    ending.callback(churn.wait)
    ending.callback(churn.terminate)
    return databases


def _fill(url: str, plan: FleetPlan, *, devices: bool) -> int:
    """Put the fleet into Placement's tables; returns the id of the last allocation."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        tables = sa.MetaData()
        tables.reflect(connection)

        def put(name: str, rows: list[dict[str, Any]]) -> None:
            for start in range(0, len(rows), install.ROWS_AT_ONCE):
                some = rows[start : start + install.ROWS_AT_ONCE]
                connection.execute(tables.tables[name].insert(), some)

        def ids(name: str) -> dict[str, int]:
            table = tables.tables[name]
            return {row.name: row.id for row in connection.execute(table.select())}

        classes, traits = ids("resource_classes"), ids("traits")
        nodes = list(compute_nodes(plan, datetime.datetime.now(datetime.UTC)))
        put("resource_providers", [_provider(each["id"], each["uuid"]) for each in nodes])
        put("inventories", [row for each in nodes for row in _inventories(each, classes)])
        put("projects", [{"id": 1, "external_id": "before"}])
        put("users", [{"id": 1, "external_id": "before"}])
        put("consumers", [_consumer(each) for each in nodes])
        used = [row for each in nodes for row in _allocations(each, classes)]
        put("allocations", used)
        if devices:
            _put_devices(put, nodes, classes[DEVICE])
        _put_traits(connection, traits)
        table = tables.tables["allocations"]
        last: int = connection.execute(sa.select(sa.func.max(table.c.id))).scalar_one()
    engine.dispose()
    return last


def _put_traits(connection: sa.Connection, traits: Mapping[str, int]) -> None:
    """Give the roots some of libvirt's traits, and some of them the rare one."""
    names = [name for name in sorted(traits) if name.startswith(("HW_CPU_X86_", "COMPUTE_"))]
    common = [traits[name] for name in names if "STATUS" not in name][: TRAITS - 1]
    numbers = ", ".join(map(str, [*common, traits["OWNER_NOVA"]]))
    rare = f"t.id = {traits[RARE]} AND MOD(p.id, {RARE_EVERY}) = 0"
    connection.exec_driver_sql(
        "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) SELECT p.id, t.id "
        "FROM resource_providers p, traits t WHERE p.parent_provider_id IS NULL "
        f"AND (t.id IN ({numbers}) OR {rare})"
    )


def _provider(number: int, name: str, root: int | None = None) -> dict[str, Any]:
    own = {"id": number, "uuid": name, "name": name, "root_provider_id": root or number}
    return {**_UNUSED, **own, "parent_provider_id": root}


def _inventory(node: int, number: int, total: int, **more: Any) -> dict[str, Any]:
    usual = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    own = {"resource_provider_id": node, "resource_class_id": number, "total": total}
    return {**usual, "allocation_ratio": 1.0, **own, **more}


def _inventories(node: Mapping[str, Any], classes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """What nova-compute reports with its default options."""
    yield _inventory(node["id"], classes["VCPU"], node["vcpus"], allocation_ratio=4.0)
    yield _inventory(node["id"], classes["MEMORY_MB"], node["memory_mb"], reserved=512)
    yield _inventory(node["id"], classes["DISK_GB"], node["local_gb"])


def _consumer(node: Mapping[str, Any]) -> dict[str, Any]:
    """All that runs on a host, as one."""
    own = {"id": node["id"], "uuid": str(uuid.UUID(int=(10 << 64) + node["id"]))}
    return {**own, "project_id": 1, "user_id": 1, "generation": 1}


def _allocations(node: Mapping[str, Any], classes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    used = {"VCPU": "vcpus_used", "MEMORY_MB": "memory_mb_used", "DISK_GB": "local_gb_used"}
    for name, column in used.items():
        own = {"resource_provider_id": node["id"], "resource_class_id": classes[name]}
        yield {**own, "consumer_id": _consumer(node)["uuid"], "used": max(1, node[column] // 2)}


def _put_devices(put: Any, nodes: list[dict[str, Any]], device: int) -> None:
    roots = [each["id"] for each in nodes for _device in range(DEVICES)]
    children = {len(nodes) + number: root for number, root in enumerate(roots, 1)}
    named = {number: str(uuid.UUID(int=(11 << 64) + number)) for number in children}
    put("resource_providers", [_provider(n, named[n], root) for n, root in children.items()])
    put("inventories", [_inventory(number, device, 1) for number in children])


def placement(session: Session, made: Cloud, processes: int, wide: bool) -> Placement:
    """Placement on the cloud's tables with so many uwsgi processes."""

    def start(ending: contextlib.ExitStack) -> Placement:
        options = WIDE if wide else ""
        server = Placement(PLACEMENT.ensure(), made.placement_url, processes, options)
        return ending.enter_context(server)

    return session.once(f"placement {made.placement_url} {processes} {wide}", start)


def forget(made: Cloud) -> None:
    """Take back what was claimed, so that no round finds a fuller fleet than another."""
    engine = sa.create_engine(made.placement_url)
    with engine.begin() as connection:
        text = f"DELETE FROM allocations WHERE id > {made.last_allocation}"
        connection.exec_driver_sql(text)
        connection.exec_driver_sql("DELETE FROM consumers WHERE project_id > 1")
    engine.dispose()


def scheduler(
    settings: Settings, session: Session, made: Cloud, claims: Settings, transport_url: str
) -> list[int]:
    """Ours or Nova's, on the cloud; returns its process when it serves."""
    key = f"scheduler {transport_url}"
    start = _nova if settings["server"] == "nova" else _ours
    return session.once(
        key, lambda ending: start(settings, session, made, claims, transport_url, ending)
    )


def _both(settings: Settings, transport_url: str) -> Mapping[str, Mapping[str, Any]]:
    filters = ",".join(configuration.chain(settings["filters"]))
    return {
        "DEFAULT": {"transport_url": transport_url, "host": "cloud", "service_down_time": 600},
        "scheduler": {"workers": 2},
        "filter_scheduler": {"enabled_filters": filters},
    }


def _ours(
    settings: Settings,
    session: Session,
    made: Cloud,
    claims: Settings,
    transport_url: str,
    ending: contextlib.ExitStack,
) -> list[int]:
    apis = {"api_database": {"connection": made.databases.api_url}, "DEFAULT": {"debug": False}}
    options = merged(_both(settings, transport_url), apis, claims, settings.get("options", {}))
    deployment = Deployment(
        session.folder(), transport_url, made.databases.cell_url, settings=options
    )
    ending.callback(deployment.close)
    daemon = deployment.start_scheduler()
    daemon.wait_ready(timeout_seconds=START_SECONDS)
    return [daemon.pid]


def _nova(
    settings: Settings,
    session: Session,
    made: Cloud,
    claims: Settings,
    transport_url: str,
    ending: contextlib.ExitStack,
) -> list[int]:
    options = merged(_both(settings, transport_url), {"placement": claims["placement"]})
    configured = made.databases.configured(session.folder(), options)
    log = configured.config.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(configured.python), "-m", "tests.nova.inside.scheduling", "--config-file",
             str(configured.config)],
            cwd=CHECKOUT, env={**environment("threading"), **THREADING},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    ending.callback(process.wait)
    ending.callback(lambda: os.killpg(process.pid, signal.SIGKILL))  # else it takes its time
    wait_until(lambda: _is_served(transport_url), START_SECONDS, lambda: log.read_text()[-3000:])
    return [process.pid]


def _is_served(transport_url: str) -> bool:
    """True when somebody has made the queue that calls go to."""
    connection = Connection(transport_url, lambda _reply: None)
    try:
        return connection.unread() >= 0
    except amqp.NotFound:
        return False
    finally:
        with contextlib.suppress(amqp.AMQPError, OSError):
            connection.close()
