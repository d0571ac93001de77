"""Fixtures: a real Nova's environment and databases, made when first asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nova import databases, environment
from tests.nova.databases import NovaDatabases
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def nova_python() -> Path:
    """The Python of an environment with Nova; skips if it cannot be made, fails with CI=true."""
    try:
        return environment.ensure()
    except environment.NotAvailable as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def nova_bus(rabbitmq: RabbitMQ) -> Iterator[str]:
    """The transport URL of a virtual host for the tests of a module."""
    vhost = rabbitmq.create_vhost()
    yield rabbitmq.url(vhost)
    rabbitmq.delete_vhost(vhost)


@pytest.fixture(scope="module")
def nova_databases(
    nova_python: Path,
    mariadb: MariaDB,
    nova_bus: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NovaDatabases]:
    """Databases of a Nova with two cells, cell1 and cell2, for the tests of a module.

    Takes 12 s; for other cells or settings call :func:`tests.nova.databases.create`.
    """
    folder = tmp_path_factory.mktemp("nova")
    made = databases.create(mariadb, nova_python, folder, nova_bus, ("cell1", "cell2"))
    yield made
    databases.drop(mariadb, made)
