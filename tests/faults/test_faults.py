"""Two schedulers under steady load, and one thing after the other that breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.rpc.client import SchedulerAPI
from tests.faults import world as worlds
from tests.faults.conftest import Results
from tests.faults.faults import FAULTS, Fault
from tests.faults.world import World
from tests.servers import mariadb, rabbitmq
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Everything that breaks here is this module's own."""
    require((*rabbitmq.PROGRAMS, *mariadb.PROGRAMS))
    folder = tmp_path_factory.mktemp("faults")
    with (
        RabbitMQ() as broker,
        MariaDB(durable=True) as database,
        worlds.made(folder, broker, database) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def api(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerAPI]:
    """The callers' way to the bus."""
    with worlds.calling(world, tmp_path_factory.mktemp("caller")) as made:
        world.api = made
        yield made


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.name)
def test_what_is_promised_for(
    world: World, api: SchedulerAPI, fault: Fault, results: Results
) -> None:
    account = worlds.endured(world, api, lambda: fault.act(world))
    results.add(fault.name, fault.promise, account)
    assert account.lost == 0
    assert set(account.refusals) <= fault.refusals
    assert fault.asks_again or not account.asked_again
    assert all(each.exit_code is None for each in world.schedulers)
