"""Two schedulers under steady load, and one thing after the other that breaks."""

import pytest

from tests.faults import world as worlds
from tests.faults.faults import FAULTS, Result
from tests.faults.world import PATIENCE_SECONDS
from tests.servers import mariadb, programs, rabbitmq
from tests.servers.fixtures import require
from tests.world.bus import scheduler_api

PROGRAMS = (programs.UNSHARE, programs.NSENTER, programs.IP, programs.FAKETIME)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Everything that breaks here is this module's own."""
    require((*rabbitmq.PROGRAMS, *mariadb.PROGRAMS, *PROGRAMS))
    with worlds.made(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture(scope="module")
def api(world, tmp_path_factory):
    folder, url = tmp_path_factory.mktemp("caller"), world.rabbitmq.url()
    with scheduler_api(folder, url, response_seconds=PATIENCE_SECONDS) as made:
        world.api = made
        yield made


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: f"{each.group}: {each.name}")
def test_what_is_promised_for(kept, world, api, fault):
    account, broken = None, "the fault was not survived"
    try:
        account = worlds.endured(world, api, lambda: fault.act(world))
        broken = fault.broken_by(account)
    finally:
        kept.append(Result(fault.name, fault.promise, not broken, account))
    assert not broken
    assert all(each.exit_code is None for each in world.schedulers)
