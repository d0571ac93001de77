"""Every test below this folder needs real servers or real processes."""

from dataclasses import dataclass

import pytest

from scheduler.rpc import connection
from tests.world import databases, fleet, process
from tests.world.connection import RawCaller
from tests.world.process import BACKENDS, Daemon

# Before a test connects: kombu remembers what its table said then.
connection.install()


@pytest.fixture(scope="session", autouse=True)
def forked_programs():
    """Processes that fork the programs, as starting each anew takes more than a second."""
    with process.forking():
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The URL of a database with its tables, which nothing here changes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('tables')}/nova.sqlite"
    with databases.synced(url):
        return url


@dataclass(frozen=True)
class ServingScheduler:
    """A scheduler of the host ``sched1`` that knows the hosts of ``fleet.HOSTS``."""

    daemon: Daemon
    transport_url: str


@pytest.fixture(scope="module", params=BACKENDS)
def serving_scheduler(request, on_sqlite):
    """One scheduler per back end for all tests of a module, for tests that only ask it."""
    # Nothing sends heartbeats for the hosts.
    settings = {"DEFAULT": {"host": "sched1", "service_down_time": 3600}}
    with on_sqlite(backend=request.param, settings=settings) as deployment:
        fleet.install(deployment.database_url)
        yield ServingScheduler(deployment.start_scheduler().wait_ready(), deployment.transport_url)


@pytest.fixture
def raw(serving_scheduler):
    """A caller of that scheduler who writes the messages by hand."""
    with RawCaller(serving_scheduler.transport_url) as caller:
        yield caller
