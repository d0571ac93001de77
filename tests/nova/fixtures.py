"""Fixtures: a real Nova's environment and databases, made when first asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nova import databases
from tests.nova.databases import NovaDatabases
from tests.servers.fixtures import made
from tests.servers.mariadb import MariaDB
from tests.servers.venvs import NOVA


@pytest.fixture(scope="session")
def nova_python() -> Path:
    """The Python of an environment with Nova; skips if it cannot be made, fails with CI=true."""
    return made(NOVA)


@pytest.fixture(scope="session")
def nova_tables(
    nova_python: Path, mariadb: MariaDB, tmp_path_factory: pytest.TempPathFactory
) -> NovaDatabases:
    """The databases behind ``nova_databases``, made once per test worker."""
    folder = tmp_path_factory.mktemp("nova")
    return databases.create(mariadb, nova_python, folder, cells=("cell1", "cell2"))


@pytest.fixture(scope="module")
def nova_databases(nova_tables: NovaDatabases) -> NovaDatabases:
    """Databases of a Nova with two cells, cell1 and cell2, without any host.

    For other cells call :func:`tests.nova.databases.create`, which takes about 12 s.
    """
    nova_tables.empty()
    return nova_tables
