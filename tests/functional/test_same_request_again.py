"""What must not depend on the bus: no second booking, no waiting for notifications."""

import time
import uuid
from pathlib import Path

from tests.functional.slow_filter import PAUSE_HINT
from tests.world import fleet
from tests.world.bus import a_context, recorded, scheduler_api
from tests.world.connection import RawCaller

DATA = "nova_object.data"
ROOM_FOR = 3
TOPIC = "schedulers_of_old"
PATIENCE_SECONDS = 40.0
"""Far less than the library would try, far more than a decision takes."""
SETTINGS = {
    "DEFAULT": {"host": "sched1", "service_down_time": 3600, "scheduler_topic": TOPIC},
    "filter_scheduler": {
        "available_filters": "nova.scheduler.filters.all_filters\n"
        "available_filters = slow_filter.PausingFilter",
        "enabled_filters": "RamFilter,PausingFilter",
    },
    # Nobody listens there.
    "oslo_messaging_notifications": {
        "driver": "messagingv2",
        "transport_url": "rabbit://guest:guest@127.0.0.1:1/",
    },
}


def a_request(pause_seconds="0"):
    """A new request for a server of 2048 MB."""
    request = recorded("select_destinations-simple.request")
    request["_context_request_id"] = f"req-{uuid.uuid4()}"
    request["args"]["instance_uuids"] = [str(uuid.uuid4())]
    spec = request["args"]["spec_obj"][DATA]
    spec["availability_zone"] = None
    spec["scheduler_hints"][PAUSE_HINT] = [pause_seconds]
    return request


def test_it_is_booked_once_and_waits_for_no_notification(
    deployment, backend, transport_url, sqlite_url, tmp_path
):
    """On a host with room for three servers; clients find the topic that is configured."""
    size = {"memory_mb": 2048 * ROOM_FOR, "free_ram_mb": 2048 * ROOM_FOR}
    fleet.install(sqlite_url, ("cmp1",), ram_allocation_ratio=1.0, **size)
    made = deployment(transport_url, sqlite_url, backend=backend, settings=SETTINGS)
    found = {"PYTHONPATH": str(Path(__file__).parent)}
    scheduler = made.start_scheduler(extra_environment=found).wait_ready()

    with scheduler_api(tmp_path, transport_url, topic=TOPIC) as api:
        own, began = str(uuid.uuid4()), time.monotonic()
        ((chosen,),) = api.select_destinations(a_context(), fleet.a_spec(own), [own], True)
        assert chosen.service_host == "cmp1"
        assert time.monotonic() - began < PATIENCE_SECONDS
    scheduler.wait_log("ERROR oslo_messaging.notify.messaging", 60)  # the operator is told

    with RawCaller(transport_url) as raw:
        slow = a_request(pause_seconds="1")
        calls = [raw.send(slow, TOPIC) for _ in range(2)]  # while the first is in hand
        replies = [raw.answer_to(each) for each in calls]
        replies.append(raw.call(slow, TOPIC))  # and when it has been answered
        assert [each["failure"] for each in replies] == [None] * 3
        assert replies[0]["result"] == replies[1]["result"] == replies[2]["result"]

        others = [raw.call(a_request(), TOPIC) for _ in range(2)]
        assert [each["failure"] is None for each in others] == [True, False], "room for one more"

        again = a_request()
        again["_context_request_id"] = slow["_context_request_id"]
        again["args"]["instance_uuids"] = slow["args"]["instance_uuids"]
        again["args"]["spec_obj"][DATA]["ignore_hosts"] = ["cmp1"]
        assert raw.call(again, TOPIC)["failure"], "other arguments, so another request"
    assert scheduler.terminate() == 0
