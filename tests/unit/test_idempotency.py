"""A request that arrives twice is decided once, and an answer comes back as it was given."""

import json
import threading

import pytest

from scheduler import errors, idempotency, notifications, objects
from scheduler.idempotency import ReplyCache
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request
from tests.waiting import Clock

KEY = ("req-1", OWN_UUID, 1)
OTHER_UUID = "00000000-0000-4000-a000-000000000002"


class Decider:
    """Counts its decisions; the answer is their number, or an error."""

    def __init__(self, error=None):
        self.count = 0
        self.error = error

    def __call__(self):
        self.count += 1
        if self.error is not None:
            raise self.error
        return [self.count]


def legacy(**properties):
    """The arguments of a Newton conductor's request."""
    return ({"num_instances": 1}, properties, a_request(), [OWN_UUID], False)


@pytest.mark.parametrize(
    ("key", "arguments", "decisions"),
    [
        pytest.param(KEY, legacy(), 1, id="the same"),
        pytest.param(("req-2", OWN_UUID, 1), legacy(), 2, id="another request id"),
        pytest.param(("req-1", OTHER_UUID, 1), legacy(), 2, id="another server"),
        pytest.param(KEY, legacy(retry={"num_attempts": 2}), 2, id="another attempt"),
        pytest.param(
            KEY, (*legacy()[:2], a_request(ignore_hosts=["h1"]), *legacy()[3:]), 2, id="ignored"
        ),
        pytest.param(KEY, (*legacy()[:4], True), 2, id="with alternates"),
    ],
)
def test_what_is_the_same_request(key, arguments, decisions):
    memory, decide = ReplyCache(60, 10, Clock()), Decider()
    assert memory.once(KEY, legacy(), decide) == [1]
    assert memory.once(key, arguments, decide) == [decisions]
    assert memory.once(KEY, legacy(), decide) == [1], "the first is still known"
    assert decide.count == decisions


def test_reading_a_field_that_was_not_sent_makes_no_other_request():
    decide = Decider()
    kept = ReplyCache(60, 100)
    arguments, again = legacy(), legacy()
    assert not arguments[2].is_set("security_groups")

    def decide_and_tell():
        notifications.request(arguments[2])
        return decide()

    assert kept.once(KEY, arguments, decide_and_tell) == kept.once(KEY, again, decide) == [1]


@pytest.mark.parametrize(
    ("later_seconds", "kept_seconds", "decisions"), [(59, 60, 1), (61, 60, 2), (0, 0, 2)]
)
def test_answers_are_kept_for_a_time(later_seconds, kept_seconds, decisions):
    clock, decide = Clock(), Decider()
    memory = ReplyCache(kept_seconds, 10, clock)
    memory.once(KEY, legacy(), decide)
    clock.now += later_seconds
    memory.once(KEY, legacy(), decide)
    assert decide.count == decisions


def test_answers_are_kept_for_so_many_servers():
    memory, decide = ReplyCache(60, 3, Clock()), Decider()
    keys = [("req-1", OWN_UUID, 2), ("req-2", OWN_UUID, 1), ("req-3", OWN_UUID, 1)]
    for key in keys:
        memory.once(key, legacy(), decide)
    for key in reversed(keys[1:]):
        memory.once(key, legacy(), decide)
    assert decide.count == 3, "three servers fit"
    memory.once(keys[0], legacy(), decide)
    assert decide.count == 4, "the oldest had to go"
    for _ in range(2):
        memory.once(("req-4", OWN_UUID, 4), legacy(), decide)
    assert decide.count == 6, "more than may be kept"


def test_errors_are_not_kept():
    memory = ReplyCache(60, 10, Clock())
    with pytest.raises(errors.NoValidHost):
        memory.once(KEY, legacy(), Decider(errors.NoValidHost(reason="")))
    assert memory.once(KEY, legacy(), Decider()) == [1]


@pytest.mark.parametrize("error", [None, errors.NoValidHost(reason="none")])
def test_a_request_in_hand_is_shared(error):
    memory, begun, go_on = ReplyCache(0, 0), threading.Event(), threading.Event()
    outcomes = []
    decide = Decider(error)

    def slowly():
        begun.set()
        assert go_on.wait(60)
        return decide()

    def ask(function):
        try:
            outcomes.append(memory.once(KEY, legacy(), function))
        except errors.NoValidHost as raised:
            outcomes.append(raised)

    first = threading.Thread(target=ask, args=[slowly])
    first.start()
    assert begun.wait(60)
    second = threading.Thread(target=ask, args=[decide])
    second.start()
    while not memory.repeated:
        second.join(0.001)
    go_on.set()
    for thread in (first, second):
        thread.join(60)

    assert decide.count == 1
    assert outcomes == [error or [1]] * 2


@pytest.mark.parametrize(
    ("request_id", "uuids", "own", "expected"),
    [
        ("req-1", [OTHER_UUID, OWN_UUID], OWN_UUID, ("req-1", OTHER_UUID, 2)),
        ("req-1", None, OWN_UUID, ("req-1", OWN_UUID, 1)),
        ("req-1", [], OWN_UUID, ("req-1", OWN_UUID, 1)),
        ("req-1", None, None, None),
        (None, [OWN_UUID], OWN_UUID, None),
    ],
)
def test_key(request_id, uuids, own, expected):
    context = RequestContext("u", "p", overwrite=False)
    context.request_id = request_id
    spec = objects.RequestSpec(num_instances=1)
    if own:
        spec.instance_uuid = own
    assert idempotency.request_key(context, spec, uuids) == expected


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (errors.NoValidHost(reason="all are full"), "all are full"),
        (errors.NoValidHost("in words of its own"), ""),
    ],
)
def test_a_refusal_comes_back_in_its_words(refusal, reason):
    text = idempotency.refusal_to_text(refusal)
    assert json.loads(text) == {"refused": reason}
    with pytest.raises(errors.NoValidHost) as caught:
        idempotency.answer_from_text(text)
    assert caught.value.kwargs["reason"] == reason
