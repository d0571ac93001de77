"""The workloads that need servers, at a size of seconds: everything in them answers, and ends."""

import pytest

from benchmarks import workload
from benchmarks.session import Servers
from scheduler import concurrency
from tests.unit.benchmarks.test_workloads import leaks
from tests.world import process


@pytest.fixture
def servers(rabbitmq, mariadb):
    """Those of the other tests, as there is nothing to be measured here."""
    process.import_programs(concurrency.EVENTLET)  # that process stays, for other tests
    return Servers(rabbitmq, mariadb)


#: Many daemons of the kind that ``bus`` starts, too.
LEFT_OUT = ("start", "workers")


def needs_servers(name):
    tiny = workload.load(name).at_tiny_size()
    return tiny.needs_servers and not tiny.needs_nova and name not in LEFT_OUT


@pytest.mark.parametrize("name", [name for name in workload.names() if needs_servers(name)])
def test_a_workload_runs(name, servers):
    leaks(name, servers=servers)
