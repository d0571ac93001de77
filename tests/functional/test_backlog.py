"""A worker takes what it works on and little more; the rest stays with the broker."""

import pathlib

import psutil
import pytest

from scheduler.rpc.library_options import PREFETCHED_REQUESTS
from tests.functional import gate_driver
from tests.waiting import wait_until
from tests.world.bus import recorded
from tests.world.calling import a_request
from tests.world.connection import RawCaller, enveloped

REPOSITORY = pathlib.Path(__file__).parents[2]
AT_ONCE = 8
REQUESTS = 2 * (AT_ONCE + PREFETCHED_REQUESTS)
#: One more has been received and waits for its turn.
IN_HAND = AT_ONCE + 1
TOPIC = "scheduler"
PING = recorded("baseapi-ping.request")
LARGE_ONES, LARGE_BYTES = 500, 200_000
"""What waits at the broker while nothing gets on, and must not come into the daemon's memory."""


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """The folder that opens the gate of :class:`gate_driver.GateDriver`."""
    folder = tmp_path / "gate"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv(gate_driver.FOLDER_VARIABLE, str(folder))
    return folder


def resident_bytes(daemon):
    """Memory of a daemon with all of its workers."""
    process = psutil.Process(daemon.pid)
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


def wait_for_backlog(raw, count):
    """Wait until so many messages are left to the broker."""
    wait_until(
        lambda: raw.unread(TOPIC) == count,
        describe=lambda: f"{count} messages, not {raw.unread(TOPIC)}, wait at the broker",
    )


def test_a_worker_that_dies_takes_only_what_it_works_on_with_it(
    deployment, transport_url, sqlite_url, backend, gate
):
    settings = {
        "DEFAULT": {"executor_thread_pool_size": AT_ONCE},
        "scheduler": {"driver": "tests.functional.gate_driver.GateDriver"},
    }
    cloud = deployment(transport_url, sqlite_url, backend=backend, settings=settings)
    cloud.sync_database()
    daemon = cloud.start_scheduler().wait_ready()
    with RawCaller(transport_url) as raw:
        calls = [raw.send(a_request()) for _ in range(REQUESTS)]
        wait_until(lambda: len(list(gate.glob(f"{gate_driver.BEGUN_PREFIX}*"))) == AT_ONCE)
        left = REQUESTS - IN_HAND - PREFETCHED_REQUESTS
        wait_for_backlog(raw, left)

        before = resident_bytes(daemon)
        for _ in range(LARGE_ONES):
            raw.publish(enveloped({**PING, "args": {"arg": "x" * LARGE_BYTES}}))
        wait_for_backlog(raw, left + LARGE_ONES)
        assert resident_bytes(daemon) - before < LARGE_ONES * LARGE_BYTES / 3

        if workers := psutil.Process(daemon.pid).children():
            workers[0].kill()
        else:  # under eventlet a single worker is the daemon
            daemon.kill()
            cloud.start_scheduler()
        # What waits when a worker begins is not poured over it either.
        wait_for_backlog(raw, left - IN_HAND + LARGE_ONES)
        (gate / gate_driver.OPEN).touch()
        for call in calls[IN_HAND:]:
            assert raw.answer_to(call)["failure"] is None
        assert not any(raw.answers_to(call) for call in calls[:IN_HAND])
