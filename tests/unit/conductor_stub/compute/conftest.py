"""A database of its own for every test, and what to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import oslo_messaging as messaging
import pytest
from oslo_config import cfg

from scheduler.db.database import Database
from scheduler.rpc import transport as bus
from scheduler.rpc.server import Server
from tests.process_options import on_in_process_bus
from tests.unit.conductor_stub.compute.ends import ConductorEnd, SchedulerEnd
from tests.unit.conductor_stub.compute.fleets import Fleet
from tests.waiting import wait_until


@pytest.fixture
def database(synced_database: Database) -> Database:
    """A SQLite database with all tables and nothing but the first content in them."""
    return synced_database


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, which the RPC library insists on: the in-process bus."""
    yield on_in_process_bus(tmp_path_factory.mktemp("conf"))
    cfg.CONF.reset()


@pytest.fixture(scope="module")
def transport(conf: cfg.ConfigOpts) -> Iterator[messaging.Transport]:
    transport = bus.get_transport(conf)
    yield transport
    transport.cleanup()


@pytest.fixture(scope="module")
def _servers(transport: messaging.Transport) -> Iterator[tuple[ConductorEnd, SchedulerEnd]]:
    ends = ConductorEnd(), SchedulerEnd()
    servers = [
        Server(transport, topic, "here", [end])
        for topic, end in zip(("conductor", "scheduler"), ends, strict=True)
    ]
    for server in servers:
        server.start()
    yield ends
    for server in servers:
        server.stop()
    for server in servers:
        server.wait()


@pytest.fixture
def conductor(_servers: Any) -> ConductorEnd:
    return _servers[0]


@pytest.fixture
def scheduler(_servers: Any) -> SchedulerEnd:
    return _servers[1]


@pytest.fixture
def fleet(
    conf: cfg.ConfigOpts, transport: Any, database: Database, scheduler: SchedulerEnd
) -> Fleet:
    fleet = Fleet(conf, database, transport)
    fleet.hosts.register()
    wait_until(lambda: len(scheduler.about(fleet.prefix)) == 3)
    scheduler.news.clear()
    return fleet
