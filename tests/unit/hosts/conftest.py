"""A database of three hosts, a clock, and a host manager on both."""

import pytest

from conductor_stub.compute import registration
from scheduler.db import rows, services
from tests.builders import put_node
from tests.unit.hosts.reading import NODE, Clock, a_manager


@pytest.fixture
def database(synced_database):
    with synced_database.write() as connection:
        registration.put_services(connection, ["h1", "h2", "h3"], 74)
        services.heartbeat(connection, [1, 2, 3], rows.utcnow())
        for host in ("h1", "h2", "h3"):
            put_node(connection, host, f"{host}.example", NODE)
    return synced_database


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(database, clock):
    manager = a_manager(database, clock)
    manager.refresh()
    return manager
