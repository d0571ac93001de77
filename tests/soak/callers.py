"""Callers on connections of their own; some die."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler import objects
from scheduler.rpc.client import INTROSPECTION, INTROSPECTION_VERSION
from tests.soak.demands import Demand
from tests.world.connection import (
    TOPIC,
    Connection,
    call_keys,
    chosen_host,
    enveloped,
    failure_class,
    message,
)

WORKERS: Final = "scheduler_worker"
FANOUT: Final = f"{TOPIC}_fanout"
RECEIVE_SECONDS: Final = 0.01
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Answer:
    """What came back: the hosts, one per server, or the class of the error.

    *demand* is None for what is no request for hosts.
    """

    demand: Demand | None
    hosts: Sequence[str]
    failure: str | None


class Caller(Connection):
    """One connection; *answered* is told of each answer."""

    def __init__(self, transport_url: str, answered: Callable[[Answer], None]) -> None:
        super().__init__(transport_url, self._take)
        self._answered = answered
        self._waiting: dict[str, tuple[Demand | None, float]] = {}

    @property
    def waiting(self) -> int:
        """How many requests are under way; one that was not answered in time is an error."""
        late = time.monotonic() - ANSWER_SECONDS
        for call, (demand, sent_at) in list(self._waiting.items()):
            if sent_at < late:
                del self._waiting[call]
                self._answered(Answer(demand, (), "Timeout"))
        return len(self._waiting)

    def ask(self, demand: Demand) -> None:
        arguments = {
            name: objects.to_plain(value) if name != "spec_obj" else value.obj_to_primitive()
            for name, value in demand.arguments.items()
        }
        request = message("select_destinations", arguments, demand.version, demand.request_id)
        self._call(request, TOPIC, demand)

    def ask_worker(self, server: str, method: str, arguments: Mapping[str, Any]) -> None:
        question = message(method, arguments, INTROSPECTION_VERSION)
        question["namespace"] = INTROSPECTION
        self._call(question, f"{WORKERS}.{server}", None)

    def cast(self, method: str, arguments: Mapping[str, Any], version: str = "4.2") -> None:
        told = {**message(method, arguments, version), "_unique_id": uuid.uuid4().hex}
        self.publish(enveloped(told), routing_key="", exchange=FANOUT)

    def receive(self) -> None:
        """Take the answers that are there, or come soon."""
        self.drain(RECEIVE_SECONDS)

    def _call(self, asked: dict[str, Any], routing_key: str, demand: Demand | None) -> None:
        call = uuid.uuid4().hex
        self._waiting[call] = demand, time.monotonic()
        keys = call_keys(call, self.reply_queue)
        self.publish(enveloped({**asked, **keys}), routing_key=routing_key)

    def _take(self, reply: Mapping[str, Any]) -> None:
        demand, _sent_at = self._waiting.pop(reply["_msg_id"], (None, 0.0))
        failure = failure_class(reply)
        answered = demand is not None and failure is None
        hosts = [chosen_host(each) for each in reply["result"]] if answered else ()
        self._answered(Answer(demand, hosts, failure))
