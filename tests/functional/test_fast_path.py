"""Both ways of requests and answers over a real broker give the same, and lose nothing."""

import contextlib
import json
import threading
import time

import kombu
import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler import conf as project_options
from scheduler.rpc import transport as rpc_transport
from scheduler.rpc.connection import Channel
from scheduler.rpc.dispatcher import BaseAPI
from scheduler.rpc.server import Server
from tests.waiting import wait_until
from tests.world.connection import RawCaller, enveloped
from tests.world.deployment import render
from tests.world.proxy import Proxy

PING = {"method": "ping", "namespace": "baseapi", "version": "1.0", "args": {"arg": "é"}}
DEEP = []
for _level in range(100):
    DEEP = [DEEP]
CALLS = 3
WAYS = pytest.mark.parametrize("way", ["fast", "library"])


class Gate:
    """An endpoint whose answers wait until it is opened."""

    target = oslo_messaging.Target(namespace="gate", version="1.0")

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()

    @oslo_messaging.expose
    def passage(self, context, number):
        del context
        self.begun.release()
        self.open.wait(60)
        return number


class Bus:
    def __init__(self, rabbitmq, folder):
        self.rabbitmq = rabbitmq
        self.vhost = rabbitmq.create_vhost()
        self.url = rabbitmq.url(self.vhost)
        self._folder = folder

    @contextlib.contextmanager
    def server(self, way, *endpoints, **rabbit):
        """A server in this process; *rabbit* are options of ``[oslo_messaging_rabbit]``."""
        config = self._folder / "server.conf"
        settings = {
            "DEFAULT": {"transport_url": self.url, "executor_thread_pool_size": 4},
            "scheduler": {"rpc_fast_path": way == "fast"},
            "oslo_messaging_rabbit": rabbit,
        }
        config.write_text(render(settings), encoding="utf-8")
        project_options.register_all(cfg.CONF)
        rpc_transport.set_defaults()
        cfg.CONF(["--config-file", str(config)], project="nova")
        bus = rpc_transport.get_transport(cfg.CONF)
        server = Server(bus, "scheduler", "here", [BaseAPI("scheduler"), *endpoints])
        try:
            with contextlib.ExitStack() as ending:
                server.serve(ending)
                yield server
        finally:
            bus.cleanup()
            cfg.CONF.reset()


@pytest.fixture
def bus(rabbitmq, tmp_path):
    return Bus(rabbitmq, tmp_path)


def passage(number):
    return {"method": "passage", "namespace": "gate", "version": "1.0", "args": {"number": number}}


def test_both_ways_give_the_same_answers(bus):
    answers = []
    dressed = []
    for way in ("fast", "library"):
        with bus.server(way) as server, RawCaller(bus.url) as raw:
            answers += [raw.call(PING) for _number in range(CALLS)]
            dressed += raw.dressed
            other = "library" if way == "fast" else "fast"
            assert server.messages == {way: CALLS, other: 0}
    assert [one["result"] for one in answers] == [{"service": "scheduler", "arg": "é"}] * 6
    assert {tuple(sorted(one)) for one in answers} == {tuple(sorted(answers[0]))}
    assert len({one["_unique_id"] for one in answers}) == len(answers)
    assert dressed == [dressed[0]] * len(answers)


def test_who_serves_has_subscribed_however_slow_the_broker_is(bus, monkeypatch):
    subscribe = Channel.basic_consume

    def slowly(*arguments, **options):
        time.sleep(0.3)
        return subscribe(*arguments, **options)

    monkeypatch.setattr(Channel, "basic_consume", slowly)
    with bus.server("library") as server:
        assert server.is_consuming


@WAYS
def test_what_is_unusual_is_answered_or_dropped(bus, way):
    with bus.server(way) as server, RawCaller(bus.url) as raw:
        raw.publish("{not json")
        raw.publish(enveloped({**PING, **raw.call_keys()}), content_type="text/plain")
        unknown = raw.call({**PING, "method": "pong"})
        deep = raw.call({**PING, "args": {"arg": DEEP}})
        large = raw.call({**PING, "args": {"arg": "x" * 17 * 1024 * 1024}})
        before = sum(server.messages.values())
        own = raw.call_keys()
        for _copy in range(2):
            raw.publish(enveloped({**PING, **own}))
        # Answers come in any order, requests do not: the copy has come before the last one.
        assert raw.answer_to(own["_msg_id"])["failure"] is None
        raw.call(PING)
        assert sum(server.messages.values()) == before + 2
        assert server.deliveries.undecodable >= 1
    assert json.loads(unknown["failure"])["class"] == "NoSuchMethod"
    assert "max_request_depth" in json.loads(deep["failure"])["message"]
    assert "max_message_bytes" in json.loads(large["failure"])["message"]


@WAYS
def test_answers_come_where_the_connections_broke(bus, way):
    gate = Gate()
    with bus.server(way, gate), RawCaller(bus.url) as raw:
        raw.call(PING)
        calls = [raw.send(passage(number)) for number in range(CALLS)]
        for _call in calls:
            assert gate.begun.acquire(timeout=60)
        # Those of the server: the caller's queue is to stay.
        mine = bus.rabbitmq.control("list_connections", "-q", "pid", "client_properties")
        for line in mine.splitlines():
            if "here" in line or "pytest" in line:
                bus.rabbitmq.control("close_connection", line.split("\t")[0], "a test")
        gate.open.set()
        assert [raw.answer_to(call)["result"] for call in calls] == [*range(CALLS)]
        assert raw.call(PING)["failure"] is None


@WAYS
def test_answers_come_where_connections_went_silent(bus, way):
    with RawCaller(bus.url) as raw, Proxy(bus.rabbitmq.port) as cable:
        bus.url = bus.url.replace(f":{bus.rabbitmq.port}/", f":{cable.port}/")
        with bus.server(way, heartbeat_timeout_threshold=2):
            raw.call(PING)
            cable.silence()
            assert raw.answer_to(raw.send(PING), 30)["failure"] is None


def test_a_caller_that_is_gone_holds_nobody_up(bus):
    with (
        bus.server("fast", kombu_missing_consumer_retry_timeout=1) as server,
        RawCaller(bus.url) as gone,
        RawCaller(bus.url) as raw,
    ):
        keys = [gone.call_keys() for _number in range(20)]
        gone.delete_queue()
        for own in keys:
            gone.publish(enveloped({**PING, **own}))
        assert raw.call(PING)["failure"] is None
        wait_until(lambda: server.answers_dropped == len(keys), 60, "the end of the answers")


def test_an_answer_waits_for_a_queue_that_comes_back(bus):
    name = "reply_that_comes_back"
    with (
        bus.server("fast"),
        RawCaller(bus.url) as raw,
        kombu.Connection(bus.url.replace("rabbit:", "amqp:", 1)) as connection,
    ):
        own = [{**raw.call_keys(), "_reply_q": name} for _number in range(CALLS)]
        for each in own:
            raw.publish(enveloped({**PING, **each}))
        raw.call(PING)
        queue = kombu.Queue(name, channel=connection.channel(), exclusive=True)
        queue.declare()
        found = []

        def has_all():
            message = queue.get(no_ack=True)
            found.extend([] if message is None else [message])
            return len(found) == CALLS

        wait_until(has_all, 60, "the answers")


class Again:
    """An endpoint that tells whether its request was brought to somebody before."""

    target = oslo_messaging.Target(namespace="again", version="1.0")

    @oslo_messaging.expose
    def tell(self, context):
        return bool(context.is_redelivered)


@WAYS
def test_a_request_that_came_before_says_so(bus, way):
    question = {"method": "tell", "namespace": "again", "version": "1.0", "args": {}}
    with bus.server(way):
        pass  # the queue is there
    with RawCaller(bus.url) as raw:
        calls = [raw.send(question)]
        with kombu.Connection(bus.url.replace("rabbit:", "amqp:", 1)) as connection:
            assert kombu.Queue("scheduler", channel=connection.channel()).get() is not None
        calls.append(raw.send(question))
        with bus.server(way, Again()):
            assert [raw.answer_to(call)["result"] for call in calls] == [True, False]


@WAYS
def test_requests_on_the_way_are_given_back_at_the_end(bus, way):
    gate = Gate()
    with RawCaller(bus.url) as raw:
        with bus.server(way, gate) as server:
            calls = [raw.send(passage(number)) for number in range(30)]
            for _number in range(4):
                assert gate.begun.acquire(timeout=60)
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            gate.open.set()
            stopping.join()
        with bus.server(way, gate):
            answers = [raw.answer_to(call)["result"] for call in calls]
    assert answers == [*range(30)]
