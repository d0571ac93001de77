"""Asking the scheduler, and the policies of server groups."""

from contextlib import nullcontext

import oslo_messaging as messaging
import pytest

from conductor_stub import server_rows
from conductor_stub.planning import Planner
from scheduler import errors, objects
from scheduler.db import groups
from scheduler.rpc.context import RequestContext
from tests.builders import a_conf
from tests.unit.conductor_stub import builders

SPEC = objects.RequestSpec(instance_uuid=builders.UUIDS[0], flavor=builders.flavor())
OLD_REPLY = {"host": "a", "nodename": "n", "limits": {"memory_mb": 98304.5}}
AFFINITY, ANTI = "ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"
SOFT = "nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher"


class Scheduler:
    """Answers like a SchedulerAPI whose cap is below 4.5 (or not), after some time-outs."""

    def __init__(self, answer, capped=False, timeouts=0):
        self.answer = answer
        self.capped = capped
        self.timeouts = timeouts
        self.sent = []

    def select_destinations(
        self, context, spec, uuids, return_objects=False, return_alternates=False
    ):
        if self.capped and return_objects:
            raise errors.SelectionObjectsWithOldRPCVersionNotSupported(version="4.4")
        self.sent.append((uuids, return_objects, return_alternates))
        if len(self.sent) <= self.timeouts:
            raise messaging.MessagingTimeout
        return self.answer


def hosts_for(database, scheduler, spec=SPEC, **options):
    planner = Planner(a_conf(**options), database, scheduler)
    return planner.hosts_for(RequestContext(), [spec])


@pytest.mark.parametrize(
    ("capped", "timeouts", "max_attempts", "calls", "answered"),
    [
        pytest.param(True, 2, 3, 3, True, id="answered at the last attempt"),
        pytest.param(True, 3, 3, 3, False, id="all attempts timed out"),
        pytest.param(True, 1, 1, 1, False, id="one attempt only"),
        pytest.param(False, 1, 3, 1, False, id="today's call is never repeated"),
    ],
)
def test_only_the_old_call_is_repeated(database, capped, timeouts, max_attempts, calls, answered):
    scheduler = Scheduler([OLD_REPLY], capped, timeouts)
    with nullcontext() if answered else pytest.raises(messaging.MessagingTimeout):
        ((only,),) = hosts_for(database, scheduler, scheduler__max_attempts=max_attempts)
        assert (only.service_host, only.nodename) == ("a", "n")
        assert only.limits.to_dict() == {"memory_mb": 98304}
    assert scheduler.sent == [(builders.UUIDS[:1], not capped, not capped)] * calls


@pytest.mark.parametrize(
    ("policy", "filters", "weighers", "missing"),
    [
        ("affinity", [AFFINITY], [], None),
        ("affinity", [ANTI], [], AFFINITY),
        ("anti-affinity", [ANTI], [], None),
        ("anti-affinity", [], [], ANTI),
        ("soft-affinity", [], ["nova.scheduler.weights.all_weighers"], None),
        ("soft-affinity", [], ["scheduler.weights.all_weighers"], None),
        ("soft-affinity", [], [SOFT], None),
        ("soft-anti-affinity", [], ["my.Weigher"], "ServerGroupSoftAntiAffinityWeigher"),
        ("something-else", [], [], None),
    ],
)
def test_a_policy_needs_what_enforces_it(database, policy, filters, weighers, missing):
    with database.write() as conn:
        group = groups.create(conn, "g", policy)
        server_rows.join_group(conn, group.uuid, [SPEC.instance_uuid])
    spec, scheduler = SPEC.copy(), Scheduler([[builders.selection("a")]])
    refusal = pytest.raises(errors.UnsupportedPolicyException, match=f"{missing} not configured")
    with refusal if missing else nullcontext():
        hosts_for(database, scheduler, spec, enabled_filters=filters, weight_classes=weighers)
    assert len(scheduler.sent) == (missing is None)
    assert missing or bool(spec.instance_group) is (policy != "something-else")
