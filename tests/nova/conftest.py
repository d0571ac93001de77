"""Every test below this folder needs a real Nova, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nova.databases import NovaDatabases
from tests.nova.deployed import Deployed, deployed
from tests.servers.rabbitmq import RabbitMQ

_HERE = Path(__file__).parent
#: The first test of a run may have to wait until Nova is installed.
_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lives here, so that ``-m nova`` finds it and ``-m "not nova"`` leaves it out."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.nova)
            item.add_marker(pytest.mark.timeout(_SECONDS))


@pytest.fixture(scope="module")
def world(
    nova_databases: NovaDatabases, rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    """A Nova without hosts and a scheduler, for the tests of a module."""
    with deployed(nova_databases, rabbitmq, tmp_path_factory.mktemp("world")) as made:
        yield made
