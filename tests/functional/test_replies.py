"""Answers on the short way: the same as the library's, and none is lost where it is blocked."""

from __future__ import annotations

from tests.functional.bus import RawCaller
from tests.functional.conftest import ServingScheduler
from tests.servers.rabbitmq import RabbitMQ

PING = {"method": "ping", "namespace": "baseapi", "version": "1.0", "args": {"arg": "hello"}}
CALLS = 3


def test_both_ways_give_the_same_answer(serving_scheduler: ServingScheduler) -> None:
    with RawCaller(serving_scheduler.transport_url) as raw:
        answers = [raw.call(PING) for _number in range(CALLS)]

    assert all(one["result"] == {"service": "scheduler", "arg": "hello"} for one in answers)
    assert {tuple(sorted(one)) for one in answers} == {tuple(sorted(answers[0]))}
    assert len({one["_unique_id"] for one in answers}) == CALLS
    assert raw.dressed == [raw.dressed[0]] * CALLS


def test_answers_come_where_the_connection_broke(
    serving_scheduler: ServingScheduler, rabbitmq: RabbitMQ
) -> None:
    url = serving_scheduler.transport_url
    with RawCaller(url) as raw:
        raw.call(PING)
        raw.call(PING)
    rabbitmq.control("close_all_connections", "--vhost", url.rpartition("/")[2], "a test")

    with RawCaller(url) as raw:
        answers = [raw.call(PING) for _number in range(CALLS)]

    assert all(one["result"] == {"service": "scheduler", "arg": "hello"} for one in answers)
