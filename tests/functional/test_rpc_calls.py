"""What callers of all releases send over a real broker is answered in the form that they expect.

Reference page rpc, sections 1, 4 and 8.
"""

import re
import uuid

import pytest

from scheduler.concurrency import EVENTLET
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import a_context, recorded, scheduler_api

#: test_rpc_errors runs on both.
pytestmark = pytest.mark.parametrize("serving_scheduler", [EVENTLET], indirect=True)

LIMITS = {"memory_mb": 1.5 * fleet.MEMORY_MB, "disk_gb": float(fleet.DISK_GB)}
"""As RamFilter and DiskFilter of the default chain set them."""

# Recorded request → the hosts that may be chosen; test_wire_samples has those with replies.
DICT_REQUESTS = {
    "derived-liberty-select_destinations-v4.0": fleet.ZONE_HOSTS,
    "derived-liberty-select_destinations-v4.0-reschedule": ("cmp2",),
    "select_destinations-v4.0-rich": ("cmp2",),
    "derived-newton-select_destinations-v4.3-simple": fleet.ZONE_HOSTS,
    "derived-newton-select_destinations-v4.3-rich": ("cmp2",),
    "derived-pike-select_destinations-v4.4": fleet.ZONE_HOSTS,
}


def test_ping_of_any_scheduler(raw):
    reply = raw.call(recorded("baseapi-ping.request"))
    assert reply["result"] == recorded("baseapi-ping.reply")["result"]
    assert (reply["failure"], reply["ending"]) == (None, True)


def test_backdoor_port_of_one_scheduler(raw):
    request = recorded("baseapi-get_backdoor_port.request")
    reply = raw.call(request, routing_key="scheduler.sched1")
    assert (reply["result"], reply["failure"]) == (None, None)


@pytest.mark.parametrize("name", DICT_REQUESTS)
def test_recorded_requests_up_to_4_4_get_dicts(name, raw):
    reply = raw.call(recorded(f"{name}.request"))
    assert reply["failure"] is None
    (chosen,) = reply["result"]
    assert chosen["host"] in DICT_REQUESTS[name]
    assert chosen == {"host": chosen["host"], "nodename": chosen["host"], "limits": LIMITS}
    assert all(isinstance(limit, float) for limit in chosen["limits"].values())


@pytest.mark.parametrize(
    "cap", [None, "4.10", "4.5", "pike", "4.4", "ocata", "mitaka", "liberty", "kilo", "4.0"]
)
def test_the_client_gets_dicts_in_every_version(cap, serving_scheduler, tmp_path):
    own = str(uuid.uuid4())
    spec = fleet.a_spec(own, availability_zone=fleet.ZONE)
    with scheduler_api(tmp_path, serving_scheduler.transport_url, cap) as api:
        (chosen,) = api.select_destinations(a_context(), spec, [own])
    assert chosen["host"] in fleet.ZONE_HOSTS
    assert chosen == {"host": chosen["host"], "nodename": chosen["host"], "limits": LIMITS}


def test_a_decision_is_one_line_with_the_callers_identity(serving_scheduler, raw):
    request = recorded("select_destinations-simple.request")
    own, request_id = str(uuid.uuid4()), f"req-{uuid.uuid4()}"
    request["args"]["instance_uuids"] = [own]
    request["_context_request_id"] = request_id
    raw.call(request)

    def lines():
        log = serving_scheduler.daemon.log
        return [each for each in log.splitlines() if request_id in each and " INFO " in each]

    told = wait_until(lines, 60, "the line")
    assert len(told) == 1, told
    who = f"[{request_id} {request['_context_user_id']} {request['_context_project_id']} "
    assert who in told[0]
    form = (
        r"Placement of 1 instance\(s\) \[UUID\]: selected \[cmp\d\] "
        r"\(flavor m1.small, zone az-east, 3 hosts considered, .* ms\)"
    )
    assert re.search(form.replace("UUID", own), told[0])
