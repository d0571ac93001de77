"""The broker hears a scheduler that computes for longer than it waits for a heartbeat."""

from pathlib import Path

from scheduler import concurrency
from tests.functional.slow_filter import COMPUTE_HINT
from tests.world import fleet
from tests.world.bus import a_context, scheduler_api

HEARTBEAT_SECONDS = 1
COMPUTED_SECONDS = 1.5 * HEARTBEAT_SECONDS  # for each of three hosts


def test_a_decision_that_never_pauses_keeps_its_connections(
    deployment, rabbitmq, sqlite_url, tmp_path
):
    vhost = rabbitmq.create_vhost()
    url = rabbitmq.url(vhost)
    settings = {
        "DEFAULT": {"service_down_time": 3600},
        "filter_scheduler": {
            "available_filters": "slow_filter.PausingFilter",
            "enabled_filters": "PausingFilter",
        },
        "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": HEARTBEAT_SECONDS},
    }
    cloud = deployment(url, sqlite_url, backend=concurrency.EVENTLET, settings=settings)
    fleet.install(sqlite_url)
    found = {"PYTHONPATH": str(Path(__file__).parent)}
    cloud.start_scheduler(extra_environment=found).wait_ready()

    def ask(compute_seconds):
        hints = {COMPUTE_HINT: [str(compute_seconds)]}
        with scheduler_api(tmp_path, url) as api:
            spec = fleet.a_spec("u-1", scheduler_hints=hints)
            assert api.select_destinations(a_context(), spec, ["u-1"], True)

    def connections():
        listed = rabbitmq.control("-q", "list_consumers", "-p", vhost, "channel_pid", "queue_name")
        return {line for line in listed.splitlines() if "scheduler" in line}

    ask(0)
    before = connections()
    ask(COMPUTED_SECONDS)
    assert connections() == before
    assert len(before) > 1
