"""A caller that wants a sign of life every four seconds does not give up on a long request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nova import environment
from tests.nova.busy_filter import SECONDS_PER_HOST
from tests.nova.databases import NovaDatabases
from tests.nova.deployed import Deployed, deployed
from tests.nova.driver import NovaError
from tests.servers.rabbitmq import RabbitMQ
from tests.world.process import BACKENDS

PATIENCE_SECONDS = 4
HOSTS = [f"w{number}" for number in range(10)]
INSTANCES = 10
WITH_BUSY_FILTER = {
    "filter_scheduler": {
        "available_filters": [
            "nova.scheduler.filters.all_filters",
            "tests.nova.busy_filter.BusyFilter",
        ],
        "enabled_filters": "ComputeFilter,BusyFilter",
    }
}


@pytest.fixture(scope="module", params=BACKENDS)
def slow(
    request: pytest.FixtureRequest,
    nova_tables: NovaDatabases,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    """A scheduler that needs a second per instance."""
    nova_tables.empty()
    folder = tmp_path_factory.mktemp("slow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(environment.CHECKOUT))
        with deployed(nova_tables, rabbitmq, folder, request.param, WITH_BUSY_FILTER) as world:
            world.add_hosts("cell1", *HOSTS)
            yield world


def test_a_long_request_is_waited_for(slow: Deployed) -> None:
    assert len(HOSTS) * INSTANCES * SECONDS_PER_HOST > 2 * PATIENCE_SECONDS
    slow.nova.do(
        "calls.configure", group=None, option="rpc_response_timeout", value=PATIENCE_SECONDS
    )
    assert len(slow.hosts(count=INSTANCES)) == INSTANCES


def test_the_patience_has_an_end(slow: Deployed) -> None:
    """The other limit, of the whole call, holds in spite of signs of life."""
    slow.nova.do("calls.configure", group=None, option="long_rpc_timeout", value=1)
    try:
        with pytest.raises(NovaError) as given_up:
            slow.select(count=INSTANCES)
    finally:
        slow.nova.do("calls.configure", group=None, option="long_rpc_timeout", value=1800)
    assert given_up.value.kind == "MessagingTimeout"
