"""Every test below this folder needs a real Nova, in an environment of its own."""

import pytest

from tests.nova import databases
from tests.nova.deployed import deployed
from tests.servers.fixtures import made
from tests.servers.venvs import NOVA


@pytest.fixture(scope="session")
def nova_python():
    """The Python of an environment with Nova; skips if it cannot be made, fails with CI=true."""
    return made(NOVA)


@pytest.fixture(scope="session")
def nova_tables(nova_python, mariadb, tmp_path_factory):
    """The databases behind ``nova_databases``, made once per test worker."""
    folder = tmp_path_factory.mktemp("nova")
    return databases.create(mariadb, nova_python, folder, cells=("cell1", "cell2"))


@pytest.fixture(scope="module")
def nova_databases(nova_tables):
    """Databases of a Nova with two cells, cell1 and cell2, without any host.

    For other cells call :func:`tests.nova.databases.create`, which takes about 12 s.
    """
    nova_tables.empty()
    return nova_tables


@pytest.fixture(scope="module")
def world(nova_databases, rabbitmq, tmp_path_factory):
    """A Nova without hosts and a scheduler, for the tests of a module."""
    with deployed(nova_databases, rabbitmq, tmp_path_factory.mktemp("world")) as world:
        yield world
