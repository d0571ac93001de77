"""Fixtures: one instance of each server per test worker, started when first asked for."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.servers import chromium as chromium_browser
from tests.servers import mariadb as mariadb_server
from tests.servers import postgresql as postgresql_server
from tests.servers import programs
from tests.servers import rabbitmq as rabbitmq_server
from tests.servers.certificates import Authority
from tests.servers.chromium import Chromium
from tests.servers.mariadb import MariaDB
from tests.servers.placement import Placement
from tests.servers.postgresql import PostgreSQL
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.venvs import PLACEMENT, Environment, NotAvailable


def require(needed: tuple[programs.Program, ...]) -> None:
    """Skip the test, naming the Debian packages to install; with CI=true fail instead."""
    if packages := programs.missing_packages(needed):
        _skip(f"missing Debian packages: {' '.join(packages)}")


def made(environment: Environment) -> Path:
    """Its Python; skip the test if it cannot be made, with CI=true fail instead."""
    try:
        return environment.ensure()
    except NotAvailable as error:
        _skip(str(error))


def _skip(reason: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    """The private authority that the servers' certificates are from."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def rabbitmq(authority) -> Iterator[RabbitMQ]:
    """The worker's RabbitMQ broker.  Leave it running; to break one, make your own."""
    require(rabbitmq_server.PROGRAMS)
    with RabbitMQ(authority.certificate) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """The worker's MariaDB server.  Leave it running; to break one, make your own."""
    require(mariadb_server.PROGRAMS)
    with MariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """The worker's PostgreSQL server.  Leave it running; to break one, make your own."""
    require(postgresql_server.PROGRAMS)
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """A headless browser for the tests of a module."""
    require(chromium_browser.PROGRAMS)
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def placement_server(mariadb) -> Iterator[Placement]:
    """The worker's Placement service.  Leave it running; to break one, make your own."""
    python = made(PLACEMENT)
    name = mariadb.create_database()
    with Placement(python, mariadb.url(name)) as server:
        yield server
    mariadb.drop_database(name)


@pytest.fixture
def transport_url(rabbitmq) -> str:
    """The URL of a virtual host that only this test uses."""
    return rabbitmq.url(rabbitmq.create_vhost())


@pytest.fixture
def mariadb_url(mariadb) -> Iterator[str]:
    """The URL of an empty MariaDB database that only this test uses."""
    name = mariadb.create_database()
    yield mariadb.url(name)
    mariadb.drop_database(name)


@pytest.fixture
def postgresql_url(postgresql) -> Iterator[str]:
    """The URL of an empty PostgreSQL database that only this test uses."""
    name = postgresql.create_database()
    yield postgresql.url(name)
    postgresql.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    """The URL of an SQLite file that only this test uses."""
    return f"sqlite:///{os.fspath(tmp_path)}/nova.sqlite"


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def database_url(request) -> str:
    """An empty database, on each of the three engines in turn."""
    return str(request.getfixturevalue(f"{request.param}_url"))
