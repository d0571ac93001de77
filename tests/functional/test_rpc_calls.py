"""What callers of all releases send over a real broker is answered in the form that they expect.

Reference page rpc, sections 1, 4 and 8.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from scheduler import errors, objects
from scheduler.concurrency import EVENTLET
from tests.functional.conftest import ServingScheduler
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import RawCaller, a_context, failure_of, recorded, scheduler_api

#: test_rpc_errors runs on both.
pytestmark = pytest.mark.parametrize("serving_scheduler", [EVENTLET], indirect=True)

TOO_MUCH = objects.Flavor(
    id=9,
    name="huge",
    flavorid="9",
    memory_mb=2 * fleet.MEMORY_MB,
    vcpus=1,
    root_gb=1,
    ephemeral_gb=0,
    swap=0,
    extra_specs={},
)
LIMITS = {"memory_mb": 1.5 * fleet.MEMORY_MB, "disk_gb": float(fleet.DISK_GB)}
"""As RamFilter and DiskFilter of the default chain set them."""
NOT_ENOUGH = "There are not enough hosts available."

# Recorded request → the hosts that may be chosen.
DICT_REQUESTS = {
    "derived-liberty-select_destinations-v4.0": fleet.ZONE_HOSTS,
    "derived-liberty-select_destinations-v4.0-reschedule": ("cmp2",),
    "select_destinations-v4.0": fleet.ZONE_HOSTS,
    "select_destinations-v4.0-rich": ("cmp2",),
    "derived-newton-select_destinations-v4.3-simple": fleet.ZONE_HOSTS,
    "derived-newton-select_destinations-v4.3-rich": ("cmp2",),
    "select_destinations-v4.3-rich": ("cmp2",),
    "derived-pike-select_destinations-v4.4": fleet.ZONE_HOSTS,
    "select_destinations-v4.4": fleet.ZONE_HOSTS,
    "select_destinations-objects_false": fleet.ZONE_HOSTS,
}
# Recorded request → how many instances; the hosts that Selections may name; limits.
SELECTION_REQUESTS: dict[str, tuple[int, tuple[str, ...], dict[str, float]]] = {
    "select_destinations-simple": (1, fleet.ZONE_HOSTS, LIMITS),
    "select_destinations-multi3": (3, fleet.ZONE_HOSTS, LIMITS),
    "select_destinations-force_host": (1, ("cmp3",), {}),
    "select_destinations-rich": (1, ("cmp2",), LIMITS),
}
SELECTION_FIELDS = {
    "compute_node_uuid", "service_host", "nodename", "cell_uuid", "limits",
    "allocation_request", "allocation_request_version", "availability_zone",
}  # fmt: skip


def test_ping_of_any_scheduler(raw: RawCaller) -> None:
    reply = raw.call(recorded("baseapi-ping.request"))
    assert reply["result"] == recorded("baseapi-ping.reply")["result"]
    assert (reply["failure"], reply["ending"]) == (None, True)


def test_backdoor_port_of_one_scheduler(raw: RawCaller) -> None:
    request = recorded("baseapi-get_backdoor_port.request")
    reply = raw.call(request, routing_key="scheduler.sched1")
    assert (reply["result"], reply["failure"]) == (None, None)


@pytest.mark.parametrize("name", DICT_REQUESTS)
def test_recorded_requests_up_to_4_4_get_dicts(name: str, raw: RawCaller) -> None:
    reply = raw.call(recorded(f"{name}.request"))
    assert reply["failure"] is None
    (chosen,) = reply["result"]
    assert chosen["host"] in DICT_REQUESTS[name]
    assert chosen == {"host": chosen["host"], "nodename": chosen["host"], "limits": LIMITS}
    assert all(isinstance(limit, float) for limit in chosen["limits"].values())


@pytest.mark.parametrize("name", SELECTION_REQUESTS)
def test_recorded_requests_of_4_5_get_selections(name: str, raw: RawCaller) -> None:
    count, hosts, limits = SELECTION_REQUESTS[name]
    reply = raw.call(recorded(f"{name}.request"))
    assert reply["failure"] is None
    assert len(reply["result"]) == count
    named = [
        [_checked_selection(envelope, limits)["service_host"] for envelope in selections]
        for selections in reply["result"]
    ]
    chosen = {each[0] for each in named}
    assert chosen <= set(hosts)
    for _, *alternates in named:
        assert sorted(alternates) == sorted(set(hosts) - chosen), "those that no instance has"


def _checked_selection(envelope: dict[str, Any], limits: dict[str, float]) -> dict[str, Any]:
    """The fields of a Selection in the form that a Nova conductor reads."""
    assert envelope["nova_object.namespace"] == "nova"
    assert (envelope["nova_object.name"], envelope["nova_object.version"]) == ("Selection", "1.1")
    fields: dict[str, Any] = envelope["nova_object.data"]
    assert set(fields) == SELECTION_FIELDS
    assert fields["allocation_request"] == "null", "without Placement: the text, not JSON's null"
    assert fields["limits"]["nova_object.name"] == "SchedulerLimits"
    given = {k: v for k, v in fields["limits"]["nova_object.data"].items() if v is not None}
    assert given == limits
    zone = fleet.ZONE if fields["service_host"] in fleet.ZONE_HOSTS else "nova"
    assert fields["availability_zone"] == zone
    uuid.UUID(fields["compute_node_uuid"])
    return fields


@pytest.mark.parametrize(
    "cap", [None, "4.10", "4.5", "pike", "4.4", "ocata", "mitaka", "liberty", "kilo", "4.0"]
)
def test_the_client_gets_dicts_in_every_version(
    cap: str | None, serving_scheduler: ServingScheduler, tmp_path: Path
) -> None:
    own = str(uuid.uuid4())
    spec = fleet.a_spec(own, availability_zone=fleet.ZONE)
    with scheduler_api(tmp_path, serving_scheduler.transport_url, cap) as api:
        (chosen,) = api.select_destinations(a_context(), spec, [own])
    assert chosen["host"] in fleet.ZONE_HOSTS
    assert chosen == {"host": chosen["host"], "nodename": chosen["host"], "limits": LIMITS}


def test_the_client_gets_selections_with_alternates(
    serving_scheduler: ServingScheduler, tmp_path: Path
) -> None:
    uuids = [str(uuid.uuid4()), str(uuid.uuid4())]
    spec = fleet.a_spec(uuids[0], num_instances=2)
    with scheduler_api(tmp_path, serving_scheduler.transport_url) as api:
        chosen = api.select_destinations(a_context(), spec, uuids, True, True)
    firsts = {selections[0].service_host for selections in chosen}
    assert len(chosen) == 2
    for selections in chosen:
        assert all(isinstance(each, objects.Selection) for each in selections)
        alternates = {each.service_host for each in selections[1:]}
        assert alternates == set(fleet.HOSTS) - firsts


def test_no_valid_host_travels_as_novas_exception(raw: RawCaller) -> None:
    request = recorded("select_destinations-simple.request")
    spec = request["args"]["spec_obj"]["nova_object.data"]
    spec["flavor"]["nova_object.data"]["memory_mb"] = 2 * fleet.MEMORY_MB
    failure = failure_of(raw.call(request))
    assert (failure["module"], failure["class"]) == ("nova.exception", "NoValidHost")
    assert failure["message"] == f"No valid host was found. {NOT_ENOUGH}"
    assert failure["args"] == [failure["message"]]
    assert failure["kwargs"] == {"reason": NOT_ENOUGH, "code": 500}


@pytest.mark.parametrize("cap", [None, "4.0"])
def test_no_valid_host_is_raised_in_the_caller(
    cap: str | None, serving_scheduler: ServingScheduler, tmp_path: Path
) -> None:
    spec = fleet.a_spec(str(uuid.uuid4()), flavor=TOO_MUCH)
    with (
        scheduler_api(tmp_path, serving_scheduler.transport_url, cap) as api,
        pytest.raises(errors.NoValidHost) as caught,
    ):
        api.select_destinations(a_context(), spec, [spec.instance_uuid])
    assert caught.value.kwargs["reason"] == NOT_ENOUGH


def test_a_decision_is_one_line_with_the_callers_identity(
    serving_scheduler: ServingScheduler, raw: RawCaller
) -> None:
    request = recorded("select_destinations-simple.request")
    own, request_id = str(uuid.uuid4()), f"req-{uuid.uuid4()}"
    request["args"]["instance_uuids"] = [own]
    request["_context_request_id"] = request_id
    raw.call(request)

    def lines() -> list[str]:
        log = serving_scheduler.daemon.log
        return [each for each in log.splitlines() if request_id in each and " INFO " in each]

    told = wait_until(lines, 60, "the line")
    assert len(told) == 1, told
    who = f"[{request_id} {request['_context_user_id']} {request['_context_project_id']} "
    assert who in told[0]
    form = (
        r"Placement of 1 instance\(s\) \[UUID\]: selected \[cmp\d\] \(3 hosts considered, .* ms\)"
    )
    assert re.search(form.replace("UUID", own), told[0])
