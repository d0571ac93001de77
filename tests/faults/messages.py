"""Callers and messages that are not as they should be."""

import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import kombu

from tests.faults import bad_filter
from tests.faults.world import World
from tests.waiting import wait_until
from tests.world.bus import recorded
from tests.world.connection import RawCaller, enveloped, failure_of

#: Together far more than all schedulers have threads.
DEAD_CALLERS, REQUESTS_OF_ONE = 5, 60
KILLERS = 3
REFUSED, ANSWERS = 100, 100


def callers_gone(world: World) -> None:
    """Callers that leave many requests behind and are not there when they are answered."""
    for _ in range(DEAD_CALLERS):
        with RawCaller(world.rabbitmq.url()) as caller:
            for _ in range(REQUESTS_OF_ONE):
                caller.send(a_message())


def reply_queues_deleted(world: World) -> None:
    """The queues for the answers are deleted while the requests are on the way."""
    for _ in range(DEAD_CALLERS):
        with RawCaller(world.rabbitmq.url()) as caller:
            for _ in range(4):
                caller.send(a_message())
            caller.delete_queue()
            for _ in range(4):
                caller.send(a_message())


def answers_refused(world: World) -> None:
    """A reply queue takes one answer; the broker refuses the others, which are sent again."""
    since = time.monotonic()
    world.load.wait_for_answers(ANSWERS)
    idle = _median_seconds(world, since)
    url = world.rabbitmq.url()
    with (
        RawCaller(url) as caller,
        kombu.Connection(url.replace("rabbit:", "amqp:", 1)) as connection,
    ):
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        full = kombu.Queue("reply_full", channel=connection.channel(), queue_arguments=arguments)
        full.declare()
        for _ in range(REFUSED):
            own = {**caller.call_keys(), "_reply_q": full.name}
            caller.publish(enveloped({**a_message(), **own}))
        world.load.wait_for_answers(1)
        since = time.monotonic()
        world.load.wait_for_answers(ANSWERS)
        meanwhile = _median_seconds(world, since)
        full.delete()
    assert meanwhile <= 2 * idle


def _median_seconds(world: World, since: float) -> float:
    """Median time of the answers to requests sent since then."""
    several = world.load.served_since(since)
    return statistics.median(each.ended_at - each.sent_at for each in several)


def delivered_twice(world: World) -> None:
    """The same request comes again: same answer, one claim."""
    with RawCaller(world.rabbitmq.url()) as caller:
        for _ in range(10):
            message = a_message()
            replies = [caller.call(message)["result"] for _ in range(2)]
            (own,) = message["args"]["instance_uuids"]
            hosts = {each[0][0]["nova_object.data"]["service_host"] for each in replies}
            assert hosts == {world.claims()[own]}


def poison(world: World) -> None:
    with RawCaller(world.rabbitmq.url()) as caller:
        for body in POISON:
            caller.publish(body)


def poisoned(world: World) -> None:
    """Requests that no column of a database holds, each beside good ones; the error names it."""
    with RawCaller(world.rabbitmq.url()) as caller:
        for field, change in POISONED.items():
            message = a_message()
            change(message, message["args"]["spec_obj"]["nova_object.data"])
            failure = failure_of(caller.call(message))
            assert failure["class"] == "InvalidRequest", failure
            assert field.split(":")[0] in failure["message"], failure


def kills_its_worker(world: World) -> None:
    """A message with which every worker that takes it dies; it does not come again by itself."""
    for starts in range(_starts(world) + 1, _starts(world) + KILLERS + 1):
        with RawCaller(world.rabbitmq.url()) as caller:
            message = a_message()
            spec = message["args"]["spec_obj"]["nova_object.data"]
            spec["scheduler_hints"] = {bad_filter.HINT: [bad_filter.KILLS]}
            caller.send(message)
            wait_until(
                lambda starts=starts: _starts(world) >= starts, 60, "one in place of the dead one"
            )


def _starts(world: World) -> int:
    """Number of workers that have started so far."""
    return sum(each.log.count("Starting scheduler node") for each in world.schedulers)


def a_message() -> dict[str, Any]:
    """A recorded request, for another server."""
    message = recorded("select_destinations-simple.request")
    message["args"]["instance_uuids"] = [str(uuid.uuid4())]
    message["_context_request_id"] = f"req-{uuid.uuid4()}"
    return message


def _flavor(**values: Any) -> Callable[[Any, Any], None]:
    return lambda _message, spec: spec["flavor"]["nova_object.data"].update(values)


def _uuids(*several: str) -> Callable[[Any, Any], None]:
    return lambda message, _spec: message["args"].update(instance_uuids=list(several))


#: By the name in the error.
POISONED: Final[dict[str, Callable[[Any, Any], None]]] = {
    "instance_uuids: twice": _uuids(*[str(uuid.uuid4())] * 2),
    "instance_uuids: long": _uuids("a" * 37),
    "instance_uuids: half a character": _uuids("\ud800" + "a" * 35),
    "instance_uuids: no character": _uuids("\x00" + "a" * 35),
    "request_id: long": lambda message, _spec: message.update(_context_request_id="r" * 256),
    "request_id: no text": lambda message, _spec: message.update(_context_request_id=[1]),
    "request_id: half a character": lambda message, _spec: message.update(
        _context_request_id="\ud800"
    ),
    "flavor.id": _flavor(id=2**31),
    "flavor.root_gb + ephemeral_gb": _flavor(root_gb=2**30, ephemeral_gb=2**30),
}
POISON: Final = ("", "{", "[]", "null", enveloped({}), '{"oslo.version": "2.0"}', "\x00" * 999)
